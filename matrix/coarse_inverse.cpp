#include "matrix/coarse_inverse.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/value_types.hpp"
#include "matrix/dense.hpp"

namespace rmsp::matrix {
namespace {

using Vector = std::vector<double>;

double product(const Vector& a, const Vector& b)
{
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        sum += a[i] * b[i];
    }
    return sum;
}

/// Orthonormal vectors that A maps to zero, of those that were given.
template <class T>
std::vector<Vector> null_vectors(const CsrView<T>& a, const NearNullspace& near)
{
    constexpr double rounding = sizeof(T) == 8 ? 1e-10 : 1e-4;
    std::vector<Vector> found;
    for (int c = 0; c < near.count; ++c) {
        Vector v(static_cast<std::size_t>(a.rows));
        for (std::int64_t row = 0; row < a.rows; ++row) {
            v[static_cast<std::size_t>(row)] = near.values[static_cast<std::size_t>(row * near.count + c)];
        }
        bool null = product(v, v) > 0;
        for (std::int64_t row = 0; row < a.rows && null; ++row) {
            double sum = 0;
            double most = 0;
            for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
                const double term = double{a.values[k]} * v[static_cast<std::size_t>(a.col_idx[k])];
                sum += term;
                most += std::fabs(term);
            }
            null = std::fabs(sum) <= rounding * most;
        }
        const double before = std::sqrt(product(v, v));
        for (const Vector& other : found) {
            const double along = product(v, other);
            for (std::size_t i = 0; i < v.size(); ++i) {
                v[i] -= along * other[i];
            }
        }
        const double norm = std::sqrt(product(v, v));
        if (null && norm > rounding * before) {
            for (double& entry : v) {
                entry /= norm;
            }
            found.push_back(std::move(v));
        }
    }
    return found;
}

/// Adds factor times the projection onto orthonormal vectors to a matrix by columns.
void add_projection(Vector& dense, const std::vector<Vector>& vectors, double factor)
{
    for (const Vector& v : vectors) {
        for (std::size_t j = 0; j < v.size(); ++j) {
            for (std::size_t i = 0; i < v.size(); ++i) {
                dense[j * v.size() + i] += factor * v[i] * v[j];
            }
        }
    }
}

/// Whether x^T A x has another sign than `sign`, by more than rounding, of a matrix of few rows; of a larger one it is
/// not found out. \param sign  0: that of the first diagonal entry
bool is_indefinite(const Vector& dense, std::int64_t rows, double largest, double sign)
{
    constexpr std::int64_t most_rows = 1024;
    constexpr double rounding = 1e-8;
    const auto n = static_cast<std::size_t>(rows);
    if (rows == 0 || rows > most_rows) {
        return false;
    }
    const double expected = (sign != 0 ? sign : dense.front()) < 0 ? -1 : 1;
    Vector symmetric(n * n);
    for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t i = 0; i < n; ++i) {
            symmetric[j * n + i] =
                expected * (dense[j * n + i] + dense[i * n + j]) / 2 + (i == j ? rounding * largest : 0);
        }
    }
    Vector unused(n, 0.0);
    return !solve_positive_definite(symmetric, rows, unused);
}

}  // namespace

template <class T>
CsrMatrix<T> coarse_inverse(const CsrView<T>& a, const NearNullspace& near_nullspace, double sign, std::string& note)
{
    if (a.rows != a.cols) {
        throw Error(ErrorCode::usage, fmt::format("a matrix of {} x {} has no inverse", a.rows, a.cols));
    }
    const auto n = static_cast<std::size_t>(a.rows);
    Vector dense(n * n, 0.0);
    double largest = 0;
    for (std::int64_t row = 0; row < a.rows; ++row) {
        double most = 0;
        for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
            const double value{a.values[k]};
            if (!std::isfinite(value)) {
                throw Error(ErrorCode::usage, fmt::format("the coarsest matrix of multigrid has {} in row {}: the "
                                                          "matrix has entries that are not finite",
                                                          value, row));
            }
            dense[static_cast<std::size_t>(a.col_idx[k]) * n + static_cast<std::size_t>(row)] += value;
            most = std::max(most, std::fabs(value));
        }
        if (most == 0) {
            dense[static_cast<std::size_t>(row) * (n + 1)] = 1;
        }
        largest = std::max(largest, most);
    }
    largest = largest > 0 ? largest : 1;
    note.clear();
    const std::vector<Vector> null = null_vectors(a, near_nullspace);
    add_projection(dense, null, largest);
    if (!null.empty()) {
        note = fmt::format(
            "the coarsest matrix is singular: {} near-null vector{} of it, as of a matrix whose rows sum to "
            "zero, left out of its inverse",
            null.size(), null.size() == 1 ? " is" : "s are");
    }
    const bool indefinite = is_indefinite(dense, a.rows, largest, sign);
    Vector inverse(n * n);
    double shift = 0;
    for (Vector work = dense; !invert(work, a.rows, inverse); work = dense) {
        constexpr double first = 1e-10;
        constexpr double growth = 100;
        shift = shift == 0 ? first * largest : shift * growth;
        for (std::size_t i = 0; i < n; ++i) {
            dense[i * (n + 1)] += shift;
        }
        note = fmt::format(
            "the coarsest matrix is singular: its inverse is that of one whose diagonal is larger by {:.3g}", shift);
    }
    add_projection(inverse, null, -1 / largest);
    if (indefinite) {
        note += fmt::format(
            "{}the coarsest matrix is indefinite, as of Helmholtz's equation or a saddle point: multigrid is not for "
            "such "
            "matrices; take minres or gmres with another preconditioner",
            note.empty() ? "" : "; ");
    }

    CsrMatrix<T> out;
    out.rows = out.cols = a.rows;
    out.row_ptr.resize(n + 1);
    HostVector<std::int32_t> columns(n * n);
    out.values.resize(n * n);
    for (std::size_t row = 0; row <= n; ++row) {
        out.row_ptr[row] = static_cast<std::int64_t>(row * n);
    }
    for (std::size_t row = 0; row < n; ++row) {
        for (std::size_t column = 0; column < n; ++column) {
            columns[row * n + column] = static_cast<std::int32_t>(column);
            out.values[row * n + column] = static_cast<T>(inverse[column * n + row]);
        }
    }
    out.col_idx = std::move(columns);
    return out;
}

#define RMSP_INSTANTIATE(T) \
    template CsrMatrix<T> coarse_inverse(const CsrView<T>&, const NearNullspace&, double, std::string&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::matrix
