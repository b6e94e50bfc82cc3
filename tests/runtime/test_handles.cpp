#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "matrices.hpp"

namespace rmsp::test {
namespace {

TEST(Empty, HandlesThrowInsteadOfCrashing)
{
    DistributedMatrix<double> matrix;
    EXPECT_THROW(matrix.rows(), Error);
    EXPECT_THROW(matrix.plan(), Error);
    EXPECT_THROW(matrix.report(), Error);
    double value = 0;
    EXPECT_THROW(matrix.apply(1.0, &value, 0.0, &value), Error);
    DistributedVector<double> vector;
    EXPECT_THROW(vector.size(), Error);
    EXPECT_THROW(vector.fill(1), Error);
}

TEST(Empty, WhatWasMovedFromThrowsInsteadOfCrashing)
{
    Runtime from({.devices = "host:2"});
    const auto a = stencil7<double>(3, 3, 3);
    auto matrix = from.distribute(a.view());
    auto moved = std::move(matrix);
    Runtime runtime(std::move(from));
    // NOLINTBEGIN(bugprone-use-after-move)
    const std::string message = "this Runtime is empty: what it had was moved to another one";
    EXPECT_EQ(usage_message([&] { static_cast<void>(from.distribute(a.view())); }), message);
    EXPECT_EQ(usage_message([&] { from.plan(a.view()); }), message);
    EXPECT_EQ(usage_message([&] { from.devices(); }), message);
    EXPECT_EQ(usage_message([&] { from.topology(); }), message);
    EXPECT_EQ(usage_message([&] { from.transport(); }), message);
    EXPECT_EQ(usage_message([&] { from.synchronize(); }), message);
    EXPECT_EQ(usage_message([&] { from.measure_limits(); }), message);
    EXPECT_EQ(usage_message([&] { SparseProduct<double>(from, a.view(), a.view()); }), message);
    EXPECT_EQ(usage_message([&] { SparseProduct<double>::plan(from, a.view(), a.view()); }), message);
    EXPECT_EQ(usage_message([&] { to_csc(from, a.view()); }), message);
    EXPECT_THROW(matrix.rows(), Error);
    EXPECT_THROW(static_cast<void>(matrix.make_y()), Error);
    from = std::move(runtime);
    // NOLINTEND(bugprone-use-after-move)
    EXPECT_EQ(from.devices().size(), 2u);
    EXPECT_EQ(moved.rows(), 27);
}

TEST(Verify, TakesNaNAndInfinityWhereTheReferenceHasThem)
{
    const auto a = banded<double>(4, 0, {.values = ValueKind::ones});
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::vector<double> x{1, nan, infinity, 0};
    const auto verified = [&](const std::vector<double>& y) {
        return verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data());
    };
    EXPECT_TRUE(verified(x).passed);
    for (const double wrong : {nan, infinity, -infinity, 5.0}) {
        for (std::size_t row = 0; row < x.size(); ++row) {
            auto y = x;
            y[row] = wrong;
            const bool same = y[row] == x[row] || (std::isnan(wrong) && std::isnan(x[row]));
            const auto v = verified(y);
            EXPECT_EQ(v.passed, same) << row << ' ' << wrong;
            EXPECT_EQ(v.worst_row, same ? 0 : static_cast<std::int64_t>(row));
            EXPECT_FALSE(std::isnan(v.error));
        }
    }
}

}  // namespace
}  // namespace rmsp::test
