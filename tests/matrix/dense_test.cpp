#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "matrix/dense.hpp"

namespace rmsp::matrix {
namespace {

using Numbers = std::vector<double>;

Numbers random_numbers(std::size_t n, std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    Numbers v(n);
    for (double& value : v) {
        value = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
    }
    return v;
}

TEST(LeastSquares, ByHand)
{
    // The line through (0, 1), (1, 3), (2, 5), (3, 6): 1.2 + 1.7 t.
    Numbers a{1, 1, 1, 1, 0, 1, 2, 3};
    Numbers b{1, 3, 5, 6};
    ASSERT_TRUE(least_squares(a, 4, 2, b));
    EXPECT_NEAR(b[0], 1.2, 1e-14);
    EXPECT_NEAR(b[1], 1.7, 1e-14);
    Numbers one{-4};
    Numbers eight{8};
    ASSERT_TRUE(least_squares(one, 1, 1, eight));
    EXPECT_DOUBLE_EQ(eight[0], -2);
}

TEST(LeastSquares, ResidualIsOrthogonalToTheColumns)
{
    const std::size_t rows = 17;
    const std::size_t cols = 9;
    const Numbers a = random_numbers(rows * cols, 1);
    const Numbers b = random_numbers(rows, 2);
    Numbers work = a;
    Numbers x = b;
    ASSERT_TRUE(least_squares(work, rows, cols, x));
    Numbers residual = b;
    for (std::size_t j = 0; j < cols; ++j) {
        for (std::size_t i = 0; i < rows; ++i) {
            residual[i] -= a[j * rows + i] * x[j];
        }
    }
    for (std::size_t j = 0; j < cols; ++j) {
        double along = 0;
        for (std::size_t i = 0; i < rows; ++i) {
            along += a[j * rows + i] * residual[i];
        }
        EXPECT_NEAR(along, 0, 1e-13);
    }
}

TEST(LeastSquares, RefusesDependentColumns)
{
    for (const Numbers& dependent :
         {Numbers{1, 2, 3, 2, 4, 6}, Numbers{0, 0, 0, 1, 2, 3}, Numbers{1, 2, std::nan(""), 1, 0, 0}}) {
        Numbers a = dependent;
        Numbers b{1, 1, 1};
        EXPECT_FALSE(least_squares(a, 3, 2, b));
    }
    // Not dependent, only of other sizes.
    Numbers a{1, 0, 0, 1e-200 * 1e60, 1e-140, 0};
    Numbers b{1, 1, 1};
    EXPECT_TRUE(least_squares(a, 3, 2, b));
    EXPECT_NEAR(b[1], 1e140, 1e127);
}

TEST(Solve, ByHand)
{
    // Needs a row exchange: (0 1; 2 3) x = (1, 8).
    Numbers a{0, 2, 1, 3};
    Numbers b{1, 8};
    ASSERT_TRUE(solve(a, 2, b));
    EXPECT_DOUBLE_EQ(b[0], 2.5);
    EXPECT_DOUBLE_EQ(b[1], 1);
    for (const Numbers& singular : {Numbers{1, 2, 2, 4}, Numbers{0, 0, 0, 0}, Numbers{1, std::nan(""), 1, 1}}) {
        a = singular;
        b = {1, 1};
        EXPECT_FALSE(solve(a, 2, b));
        a = singular;
        Numbers inverse(4);
        EXPECT_FALSE(invert(a, 2, inverse));
    }
}

TEST(Solve, PositiveDefiniteByHand)
{
    // (4 2; 2 5) x = (2, 9), of which the upper triangle is not read.
    Numbers a{4, 2, std::nan(""), 5};
    Numbers b{2, 9};
    ASSERT_TRUE(solve_positive_definite(a, 2, b));
    EXPECT_DOUBLE_EQ(b[0], -0.5);
    EXPECT_DOUBLE_EQ(b[1], 2);
    for (const Numbers& refused : {Numbers{1, 2, 2, 1}, Numbers{-1, 0, 0, 1}, Numbers{1, 1, 1, 1}}) {
        a = refused;
        b = {1, 1};
        EXPECT_FALSE(solve_positive_definite(a, 2, b));
    }
}

TEST(Invert, RandomMatrices)
{
    for (const std::size_t n : {1, 2, 3, 8, 31, 32}) {
        const Numbers a = random_numbers(n * n, n);
        Numbers work = a;
        Numbers inverse(n * n);
        ASSERT_TRUE(invert(work, static_cast<std::int64_t>(n), inverse));
        Numbers b = random_numbers(n, n + 1);
        Numbers x(n, 0.0);
        for (std::size_t j = 0; j < n; ++j) {
            for (std::size_t i = 0; i < n; ++i) {
                x[i] += inverse[j * n + i] * b[j];
            }
        }
        work = a;
        ASSERT_TRUE(solve(work, static_cast<std::int64_t>(n), b));
        for (std::size_t i = 0; i < n; ++i) {
            EXPECT_NEAR(x[i], b[i], 1e-9 * (1 + std::fabs(b[i])));
        }
    }
}

}  // namespace
}  // namespace rmsp::matrix
