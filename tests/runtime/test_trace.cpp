#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rmsp/rmsp.hpp>

#include "matrices.hpp"
#include "nvtx_tool.hpp"

namespace rmsp::test {
namespace {

/// Of the domain "rmsp", with that name.
std::vector<Range> named(const std::string& name)
{
    std::vector<Range> found = nvtx_ranges();
    std::erase_if(found, [&](const Range& range) { return range.domain != "rmsp" || range.name != name; });
    return found;
}

// A worker has a range for each job that it runs, with the job's number, which logs say, too.
TEST(Trace, EachJobIsARangeOfEachWorker)
{
    constexpr std::size_t devices = 2;
    const auto a = with_row_lengths<double>(std::vector<std::int64_t>(200, 3), 200);
    const std::vector<double> x(200, 1.0);
    std::vector<double> y(200);
    {
        Runtime runtime({.devices = "host:2"});
        auto matrix = runtime.distribute(a.view());
        matrix.apply(1.0, x.data(), 0.0, y.data());
        matrix.apply(1.0, x.data(), 0.0, y.data());
        const CsrView<double> view = a.view();
        SparseProduct<double> product(runtime, view, view);
        product.compute(1.0);
    }
    EXPECT_EQ(named("upload of a matrix").size(), devices);
    EXPECT_GE(named("product of matrices").size(), devices);
    const auto products = named("product");
    ASSERT_EQ(products.size(), 2 * devices);
    std::vector<std::uint64_t> jobs;
    for (const Range& range : products) {
        EXPECT_TRUE(range.ended);
        EXPECT_GT(range.payload, 0U);
        jobs.push_back(range.payload);
    }
    std::sort(jobs.begin(), jobs.end());
    EXPECT_EQ(jobs[0], jobs[1]);
    EXPECT_LT(jobs[1], jobs[2]);
    EXPECT_EQ(jobs[2], jobs[3]);
}

}  // namespace
}  // namespace rmsp::test
