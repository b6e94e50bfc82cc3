#include <cmath>
#include <set>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/convert.hpp>
#include <rmsp/io.hpp>
#include <rmsp/spgemm.hpp>

#include "matrix/sparse_inverse.hpp"
#include "tests/io/helpers.hpp"
#include "tests/matrix/small.hpp"

namespace rmsp::matrix {
namespace {

using test::dense;
using test::pattern_of;
using test::product;
using test::random_dominant;
using test::sparse;
using testing::ElementsAre;
using testing::Pointwise;

using Numbers = std::vector<double>;
MATCHER(Near, "") { return std::fabs(std::get<0>(arg) - std::get<1>(arg)) <= 1e-12; }

template <class T>
CsrMatrix<T> inverse(const CsrMatrix<T>& a, SparseInverse kind, const InversePattern& pattern = {})
{
    CsrMatrix<T> m = inverse_pattern(a.view(), kind, pattern);
    test::expect_canonical(m);
    EXPECT_EQ(fill_inverse(a.view(), kind, m).singular_rows, 0);
    return m;
}

TEST(SparseInverse, OfATriangleByHand)
{
    // The inverse of a bidiagonal matrix is full; on the pattern of A:
    const auto a = sparse<double>(3, 3, {2, 0, 0, 1, 2, 0, 0, 1, 2});
    // isai: the rows solve what they can see.
    EXPECT_THAT(dense(inverse(a, SparseInverse::isai)),
                Pointwise(Near(), Numbers{0.5, 0, 0, -0.25, 0.5, 0, 0, -0.25, 0.5}));
    // spai: m_2 = (x, y) minimises |(x 2 + y, 2 y - 1)|, which has a zero; m_3 minimises |(x, 2x + y, 2y - 1)|.
    EXPECT_THAT(dense(inverse(a, SparseInverse::spai)),
                Pointwise(Near(), Numbers{0.5, 0, 0, -0.25, 0.5, 0, 0, -4.0 / 21, 10.0 / 21}));
    // SPAI-0: a_ii / |a_i|^2.
    EXPECT_THAT(dense(inverse(a, SparseInverse::spai, {.power = 0})),
                Pointwise(Near(), Numbers{0.5, 0, 0, 0, 0.4, 0, 0, 0, 0.4}));
    // With the pattern of A^2, all are the inverse.
    const std::vector<double> exact{0.5, 0, 0, -0.25, 0.5, 0, 0.125, -0.25, 0.5};
    EXPECT_THAT(dense(inverse(a, SparseInverse::spai, {.power = 2})), Pointwise(Near(), exact));
    EXPECT_THAT(dense(inverse(a, SparseInverse::isai, {.power = 2})), Pointwise(Near(), exact));
}

TEST(SparseInverse, FactoredByHand)
{
    // A = L L^T with L = (2 0; 1 3), so G = L^-1.
    const auto a = sparse<double>(2, 2, {4, 2, 2, 10});
    EXPECT_THAT(dense(inverse(a, SparseInverse::fsai)), Pointwise(Near(), Numbers{0.5, 0, -1.0 / 6, 1.0 / 3}));
}

TEST(SparseInverse, PatternsOfPowers)
{
    const auto a = random_dominant<double>(60, 2, false, 3);
    std::set<std::pair<std::int64_t, std::int64_t>> expected;
    for (std::int64_t i = 0; i < 60; ++i) {
        expected.emplace(i, i);
    }
    const auto of_a = pattern_of(a);
    for (int power = 0; power <= 3; ++power) {
        EXPECT_EQ(pattern_of(inverse_pattern(a.view(), SparseInverse::spai, {power, 1000, 100000})), expected);
        std::set<std::pair<std::int64_t, std::int64_t>> lower;
        for (const auto& [i, j] : pattern_of(inverse_pattern(a.view(), SparseInverse::fsai, {power, 1000, 100000}))) {
            EXPECT_LE(j, i);
            EXPECT_TRUE(expected.contains({i, j}));
        }
        const auto before = expected;
        for (const auto& [i, k] : before) {
            for (const auto& [l, j] : of_a) {
                if (k == l) {
                    expected.emplace(i, j);
                }
            }
        }
    }
}

TEST(SparseInverse, LimitsKeepTheDiagonalAndTheLargest)
{
    const auto a = sparse<double>(4, 4,
                                  {1, 3, -9, 5,  //
                                   0, 1, 0, 0,   //
                                   1, 1, 1, 1,   //
                                   0, 0, 0, 1});
    EXPECT_EQ(pattern_of(inverse_pattern(a.view(), SparseInverse::spai, {1, 2, 100})),
              (std::set<std::pair<std::int64_t, std::int64_t>>{{0, 0}, {0, 2}, {1, 1}, {2, 0}, {2, 2}, {3, 3}}));
    // Row 2 has no place among 7 entries beside the 4 of row 0; rows 3 and 1 have.
    EXPECT_EQ(pattern_of(inverse_pattern(a.view(), SparseInverse::spai, {1, 4, 7})),
              (std::set<std::pair<std::int64_t, std::int64_t>>{
                  {0, 0}, {0, 1}, {0, 3}, {1, 1}, {2, 1}, {2, 2}, {2, 3}, {3, 3}}));
    EXPECT_EQ(test::message_of(ErrorCode::usage,
                               [&] {
                                   inverse_pattern(a.view(), SparseInverse::spai, {1, 0, 7});
                               }),
              "a sparse inverse with the pattern of power 1, at most 0 entries a row made of at most 7: at least 0, 1 "
              "and 1");
    const auto wide = sparse<double>(1, 2, {1, 1});
    test::message_of(ErrorCode::usage, [&] { inverse_pattern(wide.view(), SparseInverse::spai); });
}

TEST(SparseInverse, HubsDoNotExplode)
{
    // Row 0 and column 0 are full.
    constexpr std::int64_t n = 20000;
    CsrMatrix<double> a;
    a.rows = a.cols = n;
    HostVector<std::int32_t> columns;
    a.row_ptr.push_back(0);
    for (std::int32_t row = 0; row < n; ++row) {
        for (std::int32_t column = 0; column < (row == 0 ? n : 0); ++column) {
            columns.push_back(column);
            a.values.push_back(column == 0 ? 2.0 * n : 1);
        }
        if (row > 0) {
            columns.push_back(0);
            columns.push_back(row);
            a.values.push_back(1);
            a.values.push_back(4);
        }
        a.row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
    }
    a.col_idx = std::move(columns);
    for (const SparseInverse kind : {SparseInverse::spai, SparseInverse::isai, SparseInverse::fsai}) {
        const auto m = inverse(a, kind);
        EXPECT_LE(m.nnz(), 2 * n + 128);
        for (std::int64_t row = 0; row < n; ++row) {
            ASSERT_LE(m.row_ptr[static_cast<std::size_t>(row) + 1] - m.row_ptr[static_cast<std::size_t>(row)], 128);
        }
    }
}

TEST(SparseInverse, RowsOfSpaiCannotBeImproved)
{
    for (const std::uint64_t seed : {1, 2, 3}) {
        const std::size_t n = 40;
        const auto a = random_dominant<double>(40, 3, false, seed);
        const auto full = dense(a);
        auto m = inverse(a, SparseInverse::spai);
        // The gradient of |m A - e|^2 in the entries of the pattern is (m A - e) A^T.
        std::vector<double> residual = product(dense(m), full, n);
        for (std::size_t i = 0; i < n; ++i) {
            residual[i * n + i] -= 1;
        }
        double norm = 0;
        for (const double v : residual) {
            norm += v * v;
        }
        EXPECT_LT(std::sqrt(norm), 0.7 * std::sqrt(static_cast<double>(n)));
        for (const auto& [i, j] : pattern_of(m)) {
            double gradient = 0;
            for (std::size_t k = 0; k < n; ++k) {
                gradient += residual[static_cast<std::size_t>(i) * n + k] * full[static_cast<std::size_t>(j) * n + k];
            }
            EXPECT_NEAR(gradient, 0, 1e-12) << i << " " << j;
        }
    }
}

TEST(SparseInverse, IsaiIsExactOnThePattern)
{
    const std::size_t n = 50;
    const auto a = random_dominant<double>(50, 3, false, 5);
    const auto m = inverse(a, SparseInverse::isai);
    const auto ma = product(dense(m), dense(a), n);
    for (const auto& [i, j] : pattern_of(m)) {
        EXPECT_NEAR(ma[static_cast<std::size_t>(i) * n + static_cast<std::size_t>(j)], i == j ? 1 : 0, 1e-13);
    }
}

TEST(SparseInverse, FactoredHasAUnitDiagonalAndImprovesTheCondition)
{
    const std::size_t n = 50;
    const auto a = random_dominant<double>(50, 2, true, 6);
    const auto g = inverse(a, SparseInverse::fsai);
    const auto ga = product(dense(g), dense(a), n);
    const auto gagt = product(ga, dense(transposed(g.view())), n);
    double beside = 0;
    double scaled_beside = 0;
    const auto full = dense(a);
    for (std::size_t i = 0; i < n; ++i) {
        EXPECT_NEAR(gagt[i * n + i], 1, 1e-13);
        for (std::size_t j = 0; j < n; ++j) {
            beside += i == j ? 0 : gagt[i * n + j] * gagt[i * n + j];
            scaled_beside += i == j ? 0 : full[i * n + j] * full[i * n + j] / (full[i * n + i] * full[j * n + j]);
        }
        // G A is zero on the pattern below the diagonal.
        for (const auto& [row, column] : pattern_of(g)) {
            if (row != column) {
                EXPECT_NEAR(ga[static_cast<std::size_t>(row) * n + static_cast<std::size_t>(column)], 0, 1e-13);
            }
        }
    }
    EXPECT_LT(beside, scaled_beside / 2);
}

TEST(SparseInverse, NewValuesKeepThePattern)
{
    const auto a = random_dominant<float>(200, 4, true, 8);
    CsrMatrix<float> doubled = a;
    for (float& v : doubled.values) {
        v *= 2;
    }
    for (const SparseInverse kind : {SparseInverse::spai, SparseInverse::isai, SparseInverse::fsai}) {
        const auto expected = inverse(a, kind);
        auto m = inverse(doubled, kind);
        fill_inverse(a.view(), kind, m);
        test::expect_equal(m, expected);
    }
}

TEST(SparseInverse, SingularRowsHaveADiagonalAlone)
{
    // Rows 0 and 1 depend on each other; row 2 is empty; row 3 has no diagonal.
    const auto a = sparse<double>(4, 4, {1, 2, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0});
    CsrMatrix<double> m = inverse_pattern(a.view(), SparseInverse::spai);
    InverseStatus status = fill_inverse(a.view(), SparseInverse::spai, m);
    EXPECT_EQ(status.singular_rows, 4);
    EXPECT_EQ(status.first_singular, 0);
    EXPECT_THAT(dense(m), Pointwise(Near(), Numbers{0.2, 0, 0, 0, 0, 0.4, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}));

    const auto indefinite = sparse<double>(2, 2, {1, 2, 2, 1});
    m = inverse_pattern(indefinite.view(), SparseInverse::fsai);
    status = fill_inverse(indefinite.view(), SparseInverse::fsai, m);
    EXPECT_EQ(status.singular_rows, 1);
    EXPECT_EQ(status.first_singular, 1);
    EXPECT_THAT(dense(m), ElementsAre(1, 0, 0, 1));

    const auto not_a_number = sparse<double>(2, 2, {std::nan(""), 1, 1, 2});
    for (const SparseInverse kind : {SparseInverse::spai, SparseInverse::isai, SparseInverse::fsai}) {
        m = inverse_pattern(not_a_number.view(), kind);
        EXPECT_GE(fill_inverse(not_a_number.view(), kind, m).singular_rows, 1);
        for (const double v : m.values) {
            EXPECT_TRUE(std::isfinite(v));
        }
    }
}

}  // namespace
}  // namespace rmsp::matrix
