#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <kernels/steps/coarsening/coarsening.hpp>
#include <rmsp/io.hpp>

#include "device_csr.hpp"
#include "matrices.hpp"
#include "matrix/aggregation.hpp"
#include "matrix/coarsening.hpp"
#include "matrix/strength.hpp"
#include "test_device.hpp"

/// The steps of coarsening against the plain code for the host.
namespace rmsp::kernels::test {
namespace {

class CoarseningSteps : public DeviceTest<> {};

HostCsr<double> host_csr(const CsrMatrix<double>& a)
{
    HostCsr<double> out;
    out.rows = a.rows;
    out.cols = a.cols;
    out.row_ptr.assign(a.row_ptr.begin(), a.row_ptr.end());
    for (std::int64_t k = 0; k < a.nnz(); ++k) {
        out.col_idx.push_back(static_cast<std::int32_t>(a.col_idx[k]));
    }
    out.values.assign(a.values.begin(), a.values.end());
    return out;
}

TEST_F(CoarseningSteps, AreThoseOfTheHost)
{
    for (const ValueKind kind : {ValueKind::poisson, ValueKind::random}) {
        const auto a = stencil7<double>(13, 9, 11, {.values = kind});
        for (const bool symmetric : {false, true}) {
            const auto strong = matrix::strong_entries(
                a.view(), symmetric ? matrix::Strength::symmetric : matrix::Strength::classical, 0.25);
            const matrix::Graph graph = matrix::strong_graph(a.view(), strong);
            for (const Offsets offsets : {Offsets::i32, Offsets::i64}) {
                const Context& context = device_->context();
                const DeviceCsr<double> there(*device_, host_csr(a), offsets);
                const auto n = static_cast<std::size_t>(a.rows);
                ASSERT_TRUE(is_canonical(there.shard, context));
                const DeviceArray<std::uint8_t> marks(*context.memory, strong.size());
                strong_entries(there.shard, symmetric, 0.25, marks.data(), context);
                ASSERT_EQ(download(*device_, marks.data(), marks.size()),
                          std::vector<std::uint8_t>(strong.begin(), strong.end()));
                const DeviceArray<std::int32_t> number(*context.memory, n);
                const matrix::Coarsening points = matrix::pmis(graph);
                EXPECT_EQ(pmis(a.rows, there.shard.row_ptr, there.shard.col_idx, marks.data(), number.data(), context),
                          points.count);
                EXPECT_EQ(download(*device_, number.data(), n),
                          std::vector<std::int32_t>(points.number.begin(), points.number.end()));
                if (!is_symmetric(a.rows, there.shard.row_ptr, there.shard.col_idx, marks.data(), context)) {
                    EXPECT_NE(matrix::symmetrised(graph).col_idx.size(), graph.col_idx.size());
                    continue;
                }
                const matrix::Coarsening groups = matrix::aggregates(graph);
                EXPECT_EQ(
                    aggregates(a.rows, there.shard.row_ptr, there.shard.col_idx, marks.data(), number.data(), context),
                    groups.count);
                EXPECT_EQ(download(*device_, number.data(), n),
                          std::vector<std::int32_t>(groups.number.begin(), groups.number.end()));
                const auto t = matrix::tentative(groups, 1, matrix::constants(a.rows, 1));
                const DeviceArray<double> values = upload(*device_, std::vector<double>(n, 1.0));
                const DeviceArray<double> coarse(*context.memory, static_cast<std::size_t>(groups.count));
                normalise(a.rows, number.data(), groups.count, values.data(), coarse.data(), context);
                EXPECT_EQ(download(*device_, values.data(), n), std::vector<double>(t.values.begin(), t.values.end()));
                EXPECT_EQ(download(*device_, coarse.data(), coarse.size()),
                          std::vector<double>(t.coarse.values.begin(), t.coarse.values.end()));
            }
        }
    }
}

}  // namespace
}  // namespace rmsp::kernels::test
