#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/convert.hpp>
#include <rmsp/io.hpp>
#include <rmsp/spgemm.hpp>

#include "matrix/diagonal.hpp"
#include "matrix/incomplete.hpp"
#include "matrix/levels.hpp"
#include "matrix/sparse_inverse.hpp"

// What preconditioners are for: conjugate gradients that end sooner.
namespace rmsp::matrix {
namespace {

using Numbers = std::vector<double>;
using Operator = std::function<Numbers(const Numbers&)>;

Operator product_with(const CsrMatrix<double>& a)
{
    return [&a](const Numbers& x) {
        Numbers y(static_cast<std::size_t>(a.rows), 0.0);
        for (std::size_t row = 0; row < y.size(); ++row) {
            for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
                y[row] += a.values[static_cast<std::size_t>(k)] * x[static_cast<std::size_t>(a.col_idx[k])];
            }
        }
        return y;
    };
}

double dot(const Numbers& x, const Numbers& y)
{
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        sum += x[i] * y[i];
    }
    return sum;
}

/// Iterations of the preconditioned method of conjugate gradients until |r| <= 1e-10 |b|. (Saad: Iterative methods for
/// sparse linear systems, algorithm 9.1)
int iterations(const Operator& a, const Numbers& b, const Operator& precondition)
{
    Numbers r = b;
    Numbers z = precondition(r);
    Numbers p = z;
    double rz = dot(r, z);
    int count = 0;
    while (std::sqrt(dot(r, r)) > 1e-10 * std::sqrt(dot(b, b)) && count < 2000) {
        const Numbers ap = a(p);
        const double alpha = rz / dot(p, ap);
        for (std::size_t i = 0; i < r.size(); ++i) {
            r[i] -= alpha * ap[i];
        }
        z = precondition(r);
        const double next = dot(r, z);
        for (std::size_t i = 0; i < p.size(); ++i) {
            p[i] = z[i] + next / rz * p[i];
        }
        rz = next;
        ++count;
    }
    return count;
}

/// Poisson's equation with coefficients that jump by four orders of magnitude from one slab of the grid to the next.
CsrMatrix<double> jumping_coefficients()
{
    CsrMatrix<double> a = stencil7<double>(16, 16, 16, {.values = ValueKind::poisson});
    const auto factor = [](std::int64_t row) { return row / 16 / 16 / 4 % 2 == 0 ? 1.0 : 100.0; };
    for (std::int64_t row = 0; row < a.rows; ++row) {
        for (std::int64_t k = a.row_ptr[static_cast<std::size_t>(row)];
             k < a.row_ptr[static_cast<std::size_t>(row) + 1]; ++k) {
            a.values[static_cast<std::size_t>(k)] *= factor(row) * factor(a.col_idx[k]);
        }
    }
    return a;
}

TEST(Preconditioned, ConjugateGradientsEndSooner)
{
    const CsrMatrix<double> a = jumping_coefficients();
    const Operator product = product_with(a);
    Numbers b(static_cast<std::size_t>(a.rows));
    for (std::size_t i = 0; i < b.size(); ++i) {
        b[i] = std::sin(static_cast<double>(i));
    }
    const int without = iterations(product, b, [](const Numbers& r) { return r; });

    const auto own = diagonal(a.view());
    const int jacobi = iterations(product, b, [&](const Numbers& r) {
        Numbers z = r;
        for (std::size_t i = 0; i < z.size(); ++i) {
            z[i] /= own[i];
        }
        return z;
    });
    EXPECT_LT(jacobi, without / 2);

    const auto inverses = block_inverses(a.view(), 16, 0, a.rows);
    const int blocks = iterations(product, b, [&](const Numbers& r) {
        Numbers z(r.size(), 0.0);
        for (std::size_t i = 0; i < z.size(); ++i) {
            for (std::size_t k = 0; k < 16; ++k) {
                z[i] += inverses.blocks[i / 16 * 256 + k * 16 + i % 16] * r[i / 16 * 16 + k];
            }
        }
        return z;
    });
    EXPECT_LT(blocks, jacobi);

    CsrMatrix<double> g = inverse_pattern(a.view(), SparseInverse::fsai);
    EXPECT_EQ(fill_inverse(a.view(), SparseInverse::fsai, g).singular_rows, 0);
    const CsrMatrix<double> gt = transposed(g.view());
    const Operator by_g = product_with(g);
    const Operator by_gt = product_with(gt);
    const int fsai = iterations(product, b, [&](const Numbers& r) { return by_gt(by_g(r)); });
    EXPECT_LT(fsai, jacobi);

    CsrMatrix<double> wide = inverse_pattern(a.view(), SparseInverse::fsai, {.power = 2});
    EXPECT_EQ(fill_inverse(a.view(), SparseInverse::fsai, wide).singular_rows, 0);
    const CsrMatrix<double> wide_t = transposed(wide.view());
    const Operator by_wide = product_with(wide);
    const Operator by_wide_t = product_with(wide_t);
    EXPECT_LT(iterations(product, b, [&](const Numbers& r) { return by_wide_t(by_wide(r)); }), fsai);

    SquareBlock<double> factors = square_block(a.view(), 0, a.rows);
    ASSERT_TRUE(factor_ic0(factors).complete);
    const auto lower = level_triangle(factors, Triangle::lower);
    const auto upper = level_triangle(factors, Triangle::transposed_lower);
    const int cholesky = iterations(product, b, [&](const Numbers& r) {
        Numbers z = r;
        solve_reference(lower, z.data(), z.data());
        solve_reference(upper, z.data(), z.data());
        return z;
    });
    EXPECT_LT(cholesky, fsai);

    // ILU(0) of a symmetric matrix is IC(0) with other scaling.
    SquareBlock<double> lu = square_block(a.view(), 0, a.rows);
    ASSERT_TRUE(factor_ilu0(lu).complete);
    const auto unit_lower = level_triangle(lu, Triangle::unit_lower);
    const auto u = level_triangle(lu, Triangle::upper);
    const int elimination = iterations(product, b, [&](const Numbers& r) {
        Numbers z = r;
        solve_reference(unit_lower, z.data(), z.data());
        solve_reference(u, z.data(), z.data());
        return z;
    });
    EXPECT_NEAR(elimination, cholesky, 1);
}

}  // namespace
}  // namespace rmsp::matrix
