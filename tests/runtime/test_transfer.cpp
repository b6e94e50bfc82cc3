#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/rmsp.hpp>

#include "given.hpp"
#include "matrices.hpp"

// Matrices and vectors between runtimes of other devices.
namespace rmsp::test {
namespace {

class Transfers : public RuntimeTest {
protected:
    Runtime host_{RuntimeOptions{.devices = "host:3x1"}};
};

TEST_P(Transfers, MatricesGoThereAndBack)
{
    for (const auto& [name, a] : matrices<double>()) {
        for (const Given given : {Given::csr, Given::csc, Given::coo_unsorted}) {
            DistributeOptions options;
            options.unsorted = Unsorted::split;
            DistributedMatrix<double> there;
            {
                // Neither the arrays nor the first matrix are needed any more.
                const Arrays<double> arrays(a, given);
                there = transfer(arrays.distribute(host_, options), *runtime_);
            }
            expect_same_entries(download(there), a, name + ", " + name_of(given));
            expect_same_entries(download(transfer(there, host_)), a, name + ", back, " + name_of(given));
        }
    }
}

TEST_P(Transfers, VectorsGoThereAndBack)
{
    const auto a = stencil7<double>(7, 6, 5);
    std::vector<double> entries(static_cast<std::size_t>(a.rows));
    for (std::size_t i = 0; i < entries.size(); ++i) {
        entries[i] = std::sin(static_cast<double>(i));
    }
    auto here = host_.distribute(a.view());
    auto x = here.make_x(Layout::rows);
    auto y = here.make_y();
    x.upload(entries.data());
    here.apply(1, x, 0, y);

    auto there = transfer(here, *runtime_);
    for (const Layout layout : {Layout::rows, Layout::replicated}) {
        auto x_there = there.make_x(layout);
        auto y_there = there.make_y();
        transfer(x, x_there);
        there.apply(1, x_there, 0, y_there);
        auto back = here.make_y();
        transfer(y_there, back);
        std::vector<double> got(entries.size());
        std::vector<double> expected(entries.size());
        back.download(got.data());
        y.download(expected.data());
        for (std::size_t i = 0; i < got.size(); ++i) {
            EXPECT_NEAR(got[i], expected[i], 1e-12) << i;
        }
    }
    // In the kernel's order there, if it has one.
    auto ordered = there.make_x(Layout::rows, Order::kernel);
    auto again = here.make_x(Layout::rows);
    transfer(x, ordered);
    transfer(ordered, again);
    std::vector<double> got(entries.size());
    again.download(got.data());
    EXPECT_EQ(got, entries);
}

TEST_P(Transfers, NewValuesAreThoseThatCome)
{
    auto a = stencil7<float>(5, 4, 3);
    auto here = host_.distribute(a.view());
    for (float& value : a.values) {
        value *= 3;
    }
    here.update_values(a.values.data());
    expect_same_entries(download(transfer(here, *runtime_)), a, "new values");
}

TEST_P(Transfers, WrongUseIsNamed)
{
    const auto a = stencil7<double>(3, 3, 3);
    const auto smaller = stencil7<double>(3, 3, 2);
    auto here = host_.distribute(a.view());
    auto there = runtime_->distribute(smaller.view());
    const auto x = here.make_y();
    auto y = there.make_y();
    EXPECT_NE(usage_message([&] { transfer(x, y); }).find("27 entries"), std::string::npos);
    EXPECT_THROW((void)transfer(DistributedMatrix<double>(), *runtime_), Error);
    EXPECT_THROW((void)download(DistributedMatrix<double>()), Error);
    DistributeOptions options;
    options.mode = Mode::streamed;
    EXPECT_NE(usage_message([&] { (void)transfer(here, *runtime_, options); }).find("streamed"), std::string::npos);
    options.mode = Mode::resident;
    options.borrow = true;
    EXPECT_NE(usage_message([&] { (void)transfer(here, *runtime_, options); }).find("borrowed"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Machines, Transfers,
                         testing::Values(Machine{"host:1", "", 0}, Machine{"host:2x1", "", 0}, Machine{"0", "", 1},
                                         Machine{"0,1", "", 2}),
                         machine_name);

}  // namespace
}  // namespace rmsp::test
