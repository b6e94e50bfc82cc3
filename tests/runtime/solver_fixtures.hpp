#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string_view>
#include <vector>

#include <rmsp/solver.hpp>

#include "matrices.hpp"

/// Matrices that solvers are tested with, and what is computed from them serially.
namespace rmsp::test {

/// Solves, each of hundreds of jobs.
class SolverTest : public RuntimeTest {
protected:
    void SetUp() override
    {
#ifdef __SANITIZE_THREAD__
        if (std::string_view(GetParam().devices) == "host:5x1") {
            GTEST_SKIP() << "two devices have all the races of five, which take minutes under ThreadSanitizer";
        }
#endif
        RuntimeTest::SetUp();
    }
};

/// A 7-point stencil on an n x n x n grid: `diagonal`, `lower` left of it and `upper` right of it.
template <class T>
CsrMatrix<T> seven_points(std::int64_t n, double diagonal, double lower, double upper)
{
    auto a = stencil7<T>(n, n, n);
    for (std::int64_t i = 0; i < a.rows; ++i) {
        for (std::int64_t k = a.row_ptr[static_cast<std::size_t>(i)]; k < a.row_ptr[static_cast<std::size_t>(i) + 1];
             ++k) {
            const std::int64_t j = a.col_idx[k];
            a.values[static_cast<std::size_t>(k)] = static_cast<T>(j == i ? diagonal : j < i ? lower : upper);
        }
    }
    return a;
}
/// The Laplacian with a Dirichlet boundary: symmetric positive definite.
template <class T>
CsrMatrix<T> poisson(std::int64_t n)
{
    return seven_points<T>(n, 6, -1, -1);
}
/// Diffusion with a wind: nonsymmetric.
template <class T>
CsrMatrix<T> convection_diffusion(std::int64_t n)
{
    return seven_points<T>(n, 6, -1.4, -0.6);
}
/// A Laplacian less a shift between its eigenvalues: symmetric, indefinite.
template <class T>
CsrMatrix<T> shifted_laplacian(std::int64_t n)
{
    return seven_points<T>(n, 6 - 1.3, -1, -1);
}

/// Oseen's equations on n x n points of a square, by central differences: two velocities and the pressure of a point
/// are successive rows. The wind turns; the pressure is stabilised by a small multiple of its Laplacian, so that its
/// diagonal is small beside its couplings with the velocities.
template <class T>
CsrMatrix<T> oseen(std::int64_t n, double viscosity, double stabilisation)
{
    const double h = 1.0 / static_cast<double>(n + 1);
    CsrMatrix<T> a;
    HostVector<std::int32_t> columns;
    a.rows = a.cols = 3 * n * n;
    a.row_ptr.push_back(0);
    for (std::int64_t point = 0; point < n * n; ++point) {
        const double x = 2 * h * static_cast<double>(point % n + 1) - 1;
        const double y = 2 * h * static_cast<double>(point / n + 1) - 1;
        const double wind[2] = {2 * y * (1 - x * x), -2 * x * (1 - y * y)};
        for (int unknown = 0; unknown < 3; ++unknown) {
            std::map<std::int64_t, double> row;
            double diagonal = unknown < 2 ? 4 * viscosity : 1e-8 * h * h;
            for (const int axis : {0, 1}) {
                for (const int side : {-1, 1}) {
                    const std::int64_t at = (axis == 0 ? point % n : point / n) + side;
                    if (at < 0 || at >= n) {
                        continue;
                    }
                    const std::int64_t other = point + side * (axis == 0 ? 1 : n);
                    const double gradient = side * h / 2;
                    if (unknown < 2) {
                        row[3 * other + unknown] = wind[axis] * gradient - viscosity;
                    } else {
                        row[3 * other + 2] = -stabilisation * h * h;
                        diagonal += stabilisation * h * h;
                    }
                    if (unknown == axis || unknown == 2) {
                        row[3 * other + (unknown == 2 ? axis : 2)] = gradient;
                    }
                }
            }
            row[3 * point + unknown] = diagonal;
            for (const auto& [column, value] : row) {
                columns.push_back(static_cast<std::int32_t>(column));
                a.values.push_back(static_cast<T>(value));
            }
            a.row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
        }
    }
    a.col_idx = IndexArray(std::move(columns));
    return a;
}

/// y = A x
template <class T>
std::vector<double> product(const CsrMatrix<T>& a, const std::vector<double>& x)
{
    std::vector<double> y(static_cast<std::size_t>(a.rows), 0.0);
    for (std::int64_t i = 0; i < a.rows; ++i) {
        for (std::int64_t k = a.row_ptr[static_cast<std::size_t>(i)]; k < a.row_ptr[static_cast<std::size_t>(i) + 1];
             ++k) {
            y[static_cast<std::size_t>(i)] +=
                double{a.values[static_cast<std::size_t>(k)]} * x[static_cast<std::size_t>(a.col_idx[k])];
        }
    }
    return y;
}
/// y = A^T x
template <class T>
std::vector<double> product_transposed(const CsrMatrix<T>& a, const std::vector<double>& x)
{
    std::vector<double> y(static_cast<std::size_t>(a.cols), 0.0);
    for (std::int64_t i = 0; i < a.rows; ++i) {
        for (std::int64_t k = a.row_ptr[static_cast<std::size_t>(i)]; k < a.row_ptr[static_cast<std::size_t>(i) + 1];
             ++k) {
            y[static_cast<std::size_t>(a.col_idx[k])] +=
                double{a.values[static_cast<std::size_t>(k)]} * x[static_cast<std::size_t>(i)];
        }
    }
    return y;
}

/// The Euclidean norm, also where squares overflow.
template <class T>
double norm_of(const std::vector<T>& v)
{
    double largest = 0;
    for (const T entry : v) {
        largest = std::max(largest, std::abs(double{entry}));
    }
    if (largest == 0) {
        return 0;
    }
    double sum = 0;
    for (const T entry : v) {
        sum += double{entry} / largest * (double{entry} / largest);
    }
    return largest * std::sqrt(sum);
}

/// b - A x
template <class T>
std::vector<double> residual_vector(const CsrMatrix<T>& a, const std::vector<T>& b, const std::vector<T>& x)
{
    std::vector<double> r = product(a, std::vector<double>(x.begin(), x.end()));
    for (std::size_t i = 0; i < r.size(); ++i) {
        r[i] = double{b[i]} - r[i];
    }
    return r;
}
template <class T>
double residual_of(const CsrMatrix<T>& a, const std::vector<T>& b, const std::vector<T>& x)
{
    return norm_of(residual_vector(a, b, x));
}

}  // namespace rmsp::test
