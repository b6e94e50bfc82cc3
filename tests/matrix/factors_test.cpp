#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <core/subscript.hpp>
#include <rmsp/io.hpp>

#include "matrix/incomplete.hpp"
#include "matrix/levels.hpp"
#include "tests/io/helpers.hpp"
#include "tests/matrix/small.hpp"

namespace rmsp::matrix {
namespace {

using test::product;
using test::random_dominant;
using test::sparse;
using testing::ElementsAre;

using core::at;

/// Row-major; of L (with a unit diagonal if asked for), of U, or of all.
template <class T, class Keep>
std::vector<double> dense(const SquareBlock<T>& block, const Keep& keep)
{
    const std::size_t n = at(block.rows);
    std::vector<double> out(n * n, 0.0);
    for (std::int64_t row = 0; row < block.rows; ++row) {
        for (std::int64_t k = block.row_ptr[at(row)]; k < block.row_ptr[at(row) + 1]; ++k) {
            if (keep(row, block.col_idx[at(k)])) {
                out[at(row) * n + at(block.col_idx[at(k)])] = static_cast<double>(block.values[at(k)]);
            }
        }
    }
    return out;
}

template <class T>
SquareBlock<T> whole(const CsrMatrix<T>& a)
{
    return square_block(a.view(), 0, a.rows);
}

TEST(GaussSeidel, ByHand)
{
    // (D + L) D^-1 (D + U)
    auto block = whole(sparse<double>(3, 3, {2, -1, 0, -1, 4, -2, 0, -2, 8}));
    EXPECT_TRUE(factor_gauss_seidel(block).complete);
    EXPECT_THAT(block.values, ElementsAre(2, -1, -0.5, 4, -2, -0.5, 8));
    // What is outside the block is added to its diagonal, and what is 0 counts as 1.
    const auto a = sparse<double>(4, 4,
                                  {4, -1, 0.5, -2,  //
                                   -1, -3, 0, 1,    //
                                   0, 0, 0, 0,      //
                                   0, 0, 0, 5});
    auto part = square_block(a.view(), 0, 3);
    add_outside_norms(a.view(), 0, part);
    EXPECT_THAT(part.values, ElementsAre(6, -1, 0.5, -1, -4, 0));
    const FactorStatus status = factor_gauss_seidel(part);
    EXPECT_TRUE(status.complete);
    EXPECT_EQ(status.replaced, 1);
    EXPECT_EQ(part.values.back(), 1);
    auto bad = whole(sparse<double>(2, 2, {1, 2, 3, std::nan("")}));
    EXPECT_FALSE(factor_gauss_seidel(bad).complete);
}

TEST(SquareBlock, LeavesOutAddsUpAndCompletes)
{
    const std::vector<std::int64_t> row_ptr{0, 1, 5, 7, 8};
    const std::vector<std::int32_t> col_idx{0, 2, 3, 2, 0, 1, 3, 2};
    const std::vector<double> values{1, 2, 4, 8, 16, 32, 64, 128};
    const CsrView<double> a{4, 4, 8, row_ptr.data(), col_idx.data(), values.data()};
    const auto block = square_block(a, 1, 3);
    EXPECT_EQ(block.rows, 2);
    EXPECT_THAT(block.row_ptr, ElementsAre(0, 2, 4));
    EXPECT_THAT(block.col_idx, ElementsAre(0, 1, 0, 1));
    EXPECT_THAT(block.diagonal, ElementsAre(0, 3));
    EXPECT_THAT(block.values, ElementsAre(0, 10, 32, 0));
    EXPECT_EQ(square_block(a, 2, 2).rows, 0);
    test::message_of(ErrorCode::usage, [&] { square_block(a, 1, 5); });
    test::message_of(ErrorCode::usage, [&] { square_block(a, 3, 1); });
}

TEST(IncompleteLu, ByHand)
{
    // Full, so the factors are exact: L = (1; 2 1; 4 3 1), U = (2 1 1; 1 1; 2).
    auto block = whole(sparse<double>(3, 3, {2, 1, 1, 4, 3, 3, 8, 7, 9}));
    const FactorStatus status = factor_ilu0(block);
    EXPECT_TRUE(status.complete);
    EXPECT_EQ(status.shift, 0);
    EXPECT_EQ(status.attempts, 1);
    EXPECT_EQ(status.row, -1);
    EXPECT_THAT(block.values, ElementsAre(2, 1, 1, 2, 1, 1, 4, 3, 2));
    // Without the entry (2, 1), what would be put there is left out.
    block = whole(sparse<double>(3, 3, {2, 1, 1, 4, 3, 3, 8, 0, 9}));
    EXPECT_TRUE(factor_ilu0(block).complete);
    EXPECT_THAT(block.values, ElementsAre(2, 1, 1, 2, 1, 1, 4, 5));
}

TEST(Fill, ByHand)
{
    // Through row 0 there come (1, 2) and (2, 1), of level 1; through (1, 2) then (3, 2), and (2, 3), of level 2.
    const auto a = sparse<double>(4, 4,
                                  {2, 1, 1, 0,  //
                                   4, 3, 0, 1,  //
                                   8, 0, 9, 0,  //
                                   0, 1, 0, 5});
    auto block = whole(a);
    add_fill(block, 0);
    EXPECT_EQ(block.col_idx.size(), 10U);
    add_fill(block, 1);
    EXPECT_THAT(block.row_ptr, ElementsAre(0, 3, 7, 10, 12));
    EXPECT_THAT(block.col_idx, ElementsAre(0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 1, 3));
    EXPECT_THAT(block.diagonal, ElementsAre(0, 4, 9, 11));
    EXPECT_THAT(block.values, ElementsAre(2, 1, 1, 4, 3, 0, 1, 8, 0, 9, 1, 5));
    block = whole(a);
    add_fill(block, 2);
    EXPECT_THAT(block.row_ptr, ElementsAre(0, 3, 7, 11, 14));
    // renew() of what was enlarged.
    renew(a.view(), 0, block);
    EXPECT_THAT(block.values, ElementsAre(2, 1, 1, 4, 3, 0, 1, 8, 0, 9, 0, 1, 0, 5));
}

TEST(Fill, IsOfPathsThroughEarlierRows)
{
    // An entry of level p is a path of p + 1 entries, or fewer, whose inner rows all come before both its ends.
    // (Saad, section 10.3.3)
    constexpr std::int64_t n = 40;
    const auto a = random_dominant<double>(n, 2, false, 5);
    const auto pattern = dense(whole(a), [](auto, auto) { return true; });
    for (const int level : {1, 2, 3, 40}) {
        auto block = whole(a);
        add_fill(block, level);
        std::vector<bool> has(at(n * n));
        for (std::int64_t row = 0; row < n; ++row) {
            for (std::int64_t k = block.row_ptr[at(row)]; k < block.row_ptr[at(row) + 1]; ++k) {
                has[at(row * n + block.col_idx[at(k)])] = true;
            }
        }
        for (std::int64_t i = 0; i < n; ++i) {
            for (std::int64_t j = 0; j < n; ++j) {
                std::vector<std::int64_t> reached{i};
                std::vector<bool> seen(at(n));
                bool path = i == j;
                for (int steps = 1; steps <= level + 1 && !path; ++steps) {
                    std::vector<std::int64_t> next;
                    for (const std::int64_t from : reached) {
                        path = path || pattern[at(from * n + j)] != 0;
                        for (std::int64_t to = 0; to < std::min(i, j); ++to) {
                            if (pattern[at(from * n + to)] != 0 && !seen[at(to)]) {
                                seen[at(to)] = true;
                                next.push_back(to);
                            }
                        }
                    }
                    reached = std::move(next);
                }
                EXPECT_EQ(has[at(i * n + j)], path) << level << ": " << i << ", " << j;
            }
        }
        if (level == 40) {
            // Nothing is left out: L U = A.
            EXPECT_TRUE(factor_ilu0(block).complete);
            auto l = dense(block, [](std::int64_t row, std::int64_t column) { return column < row; });
            const auto u = dense(block, [](std::int64_t row, std::int64_t column) { return column >= row; });
            for (std::size_t i = 0; i < at(n); ++i) {
                l[i * at(n) + i] = 1;
                for (std::size_t j = 0; j < at(n); ++j) {
                    double sum = 0;
                    for (std::size_t k = 0; k < at(n); ++k) {
                        sum += (k == i ? 1.0 : l[i * at(n) + k]) * u[k * at(n) + j];
                    }
                    EXPECT_NEAR(sum, pattern[i * at(n) + j], 1e-12);
                }
            }
        }
    }
}

TEST(IncompleteCholesky, ByHand)
{
    // L = (2; 1 3; 0 1 2), of which nothing is left out.
    auto block = whole(sparse<double>(3, 3, {4, 2, 0, 2, 10, 3, 0, 3, 5}));
    const FactorStatus status = factor_ic0(block);
    EXPECT_TRUE(status.complete);
    EXPECT_EQ(status.attempts, 1);
    EXPECT_THAT(block.values, ElementsAre(2, 2, 1, 3, 3, 1, 2));
}

TEST(IncompleteFactors, ProductsAreTheMatrixOnThePattern)
{
    for (const bool symmetric : {false, true}) {
        for (const std::uint64_t seed : {1, 2, 3}) {
            const std::size_t n = 120;
            const auto a = random_dominant<double>(120, 3, symmetric, seed);
            const auto block = whole(a);
            auto lu = block;
            ASSERT_TRUE(factor_ilu0(lu, 3).complete);
            auto l = dense(lu, [](std::int64_t i, std::int64_t j) { return j < i; });
            for (std::size_t i = 0; i < n; ++i) {
                l[i * n + i] = 1;
            }
            const auto full = product(l, dense(lu, [](std::int64_t i, std::int64_t j) { return j >= i; }), n);
            for (std::int64_t row = 0; row < block.rows; ++row) {
                for (std::int64_t k = block.row_ptr[at(row)]; k < block.row_ptr[at(row) + 1]; ++k) {
                    EXPECT_NEAR(full[at(row) * n + at(block.col_idx[at(k)])], block.values[at(k)], 1e-13);
                }
            }
            if (!symmetric) {
                continue;
            }
            auto ic = block;
            ASSERT_TRUE(factor_ic0(ic, 3).complete);
            const auto lower = dense(ic, [](std::int64_t i, std::int64_t j) { return j <= i; });
            auto upper = lower;
            for (std::size_t i = 0; i < n; ++i) {
                for (std::size_t j = 0; j < n; ++j) {
                    upper[j * n + i] = lower[i * n + j];
                }
            }
            const auto squared = product(lower, upper, n);
            for (std::int64_t row = 0; row < block.rows; ++row) {
                for (std::int64_t k = block.row_ptr[at(row)]; k <= block.diagonal[at(row)]; ++k) {
                    EXPECT_NEAR(squared[at(row) * n + at(block.col_idx[at(k)])], block.values[at(k)], 1e-13);
                }
            }
            auto alone = block;
            ASSERT_TRUE(factor_ic0(alone, 1).complete);
            EXPECT_EQ(alone.values, ic.values);
        }
    }
}

TEST(IncompleteFactors, ShiftsWherePivotsFail)
{
    // Kershaw's matrix: symmetric positive definite, and IC(0) meets a negative pivot.
    const auto kershaw = sparse<double>(4, 4, {3, -2, 0, 2, -2, 3, -2, 0, 0, -2, 3, -2, 2, 0, -2, 3});
    auto block = whole(kershaw);
    FactorStatus status = factor_ic0(block);
    EXPECT_TRUE(status.complete);
    EXPECT_GT(status.attempts, 1);
    EXPECT_GT(status.shift, 0);
    EXPECT_EQ(status.row, 3);
    for (std::int64_t row = 0; row < 4; ++row) {
        EXPECT_GT(block.values[at(block.diagonal[at(row)])], 0);
    }
    // A zero on the diagonal that elimination does not fill.
    block = whole(sparse<double>(2, 2, {0, 1, 1, 0}));
    status = factor_ilu0(block);
    EXPECT_TRUE(status.complete);
    EXPECT_GT(status.shift, 0);
    EXPECT_EQ(status.row, 0);
}

TEST(IncompleteFactors, SayWhatCannotBeFactored)
{
    auto block = whole(sparse<double>(2, 2, {1, 1, 1, -1}));
    FactorStatus status = factor_ic0(block);
    EXPECT_FALSE(status.complete);
    EXPECT_EQ(status.row, 1);
    EXPECT_EQ(status.attempts, 1);
    block = whole(sparse<double>(2, 2, {1, 100, 100, 1}));
    status = factor_ic0(block);
    EXPECT_FALSE(status.complete);
    EXPECT_EQ(status.row, 1);
    EXPECT_EQ(status.attempts, 7);
    block = whole(sparse<double>(3, 3, {1, 1, 0, 0, 0, 0, 0, 1, 1}));
    status = factor_ilu0(block);
    EXPECT_FALSE(status.complete);
    EXPECT_EQ(status.row, 1);
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
        block = whole(sparse<double>(2, 2, {1, bad, bad, 1}));
        EXPECT_FALSE(factor_ilu0(block).complete);
        block = whole(sparse<double>(2, 2, {1, bad, bad, 1}));
        EXPECT_FALSE(factor_ic0(block).complete);
    }
    SquareBlock<float> empty = whole(sparse<float>(0, 0, {}));
    EXPECT_TRUE(factor_ilu0(empty).complete);
    EXPECT_TRUE(factor_ic0(empty).complete);
}

TEST(Levels, ByHand)
{
    // Rows 0 and 2 wait for nothing, row 1 for 0, row 3 for 1 and 2.
    const auto block = whole(sparse<double>(4, 4, {1, 5, 0, 0, 6, 2, 0, 7, 0, 0, 4, 9, 0, 8, 3, 8}));
    const auto lower = level_triangle(block, Triangle::unit_lower);
    EXPECT_THAT(lower.levels, ElementsAre(0, 2, 3, 4));
    EXPECT_THAT(lower.rows, ElementsAre(0, 2, 1, 3));
    EXPECT_THAT(lower.row_ptr, ElementsAre(0, 0, 0, 1, 3));
    EXPECT_THAT(lower.col_idx, ElementsAre(0, 1, 2));
    EXPECT_THAT(lower.values, ElementsAre(6, 8, 3));
    EXPECT_TRUE(lower.inverse_diagonal.empty());
    const auto upper = level_triangle(block, Triangle::upper);
    EXPECT_THAT(upper.levels, ElementsAre(0, 1, 3, 4));
    EXPECT_THAT(upper.rows, ElementsAre(3, 1, 2, 0));
    EXPECT_THAT(upper.col_idx, ElementsAre(3, 3, 1));
    EXPECT_THAT(upper.inverse_diagonal, ElementsAre(0.125, 0.5, 0.25, 1));
    const auto transposed = level_triangle(block, Triangle::transposed_lower);
    EXPECT_THAT(transposed.rows, ElementsAre(3, 1, 2, 0));
    EXPECT_THAT(transposed.values, ElementsAre(8, 3, 6));
    const auto none = level_triangle(whole(sparse<float>(0, 0, {})), Triangle::lower);
    EXPECT_EQ(none.level_count(), 0);
    EXPECT_EQ(none.size(), 0);
}

TEST(Levels, SolvesUndoProducts)
{
    const auto a = random_dominant<double>(300, 3, true, 4);
    auto block = whole(a);
    for (const bool renewed : {false, true}) {
        for (const Triangle kind :
             {Triangle::lower, Triangle::unit_lower, Triangle::upper, Triangle::transposed_lower}) {
            auto triangle = level_triangle(block, kind);
            if (renewed) {
                for (double& v : block.values) {
                    v *= 1.5;
                }
                renew(block, kind, triangle);
            }
            // b = T x with integers in x.
            const std::size_t n = at(block.rows);
            std::vector<double> x(n);
            std::vector<double> b(n, 0.0);
            for (std::size_t i = 0; i < n; ++i) {
                x[i] = static_cast<double>(i % 7) - 3;
            }
            for (std::int64_t row = 0; row < block.rows; ++row) {
                for (std::int64_t k = block.row_ptr[at(row)]; k < block.row_ptr[at(row) + 1]; ++k) {
                    const std::int64_t column = block.col_idx[at(k)];
                    const double v = block.values[at(k)];
                    if (column == row) {
                        b[at(row)] += kind == Triangle::unit_lower ? x[at(row)] : v * x[at(row)];
                    } else if (kind == Triangle::upper ? column > row : column < row) {
                        const bool swapped = kind == Triangle::transposed_lower;
                        b[at(swapped ? column : row)] += v * x[at(swapped ? row : column)];
                    }
                }
            }
            solve_reference(triangle, b.data(), b.data());
            for (std::size_t i = 0; i < n; ++i) {
                EXPECT_NEAR(b[i], x[i], kind == Triangle::unit_lower ? 1e-6 : 1e-11) << i;
            }
        }
    }
}

}  // namespace
}  // namespace rmsp::matrix
