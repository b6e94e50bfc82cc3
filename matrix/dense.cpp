#include "matrix/dense.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "core/subscript.hpp"
#include "core/wide_vectors.hpp"

namespace rmsp::matrix {
namespace {

using core::at;

/// What a pivot has to exceed, for entries as large as `largest`.
double least_pivot(double largest, std::int64_t n)
{
    return largest * static_cast<double>(n) * std::numeric_limits<double>::epsilon();
}

/// What the pivot of each column has to exceed, which follows from the column, so that scaling columns changes nothing.
/// Infinite if an entry is not finite: no pivot is large enough then.
std::vector<double> least_pivots(const double* a, std::int64_t n)
{
    std::vector<double> least(at(n), 0.0);
    for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t i = 0; i < n; ++i) {
            const double v = std::fabs(a[j * n + i]);
            least[at(j)] = std::max(least[at(j)], std::isfinite(v) ? v : std::numeric_limits<double>::infinity());
        }
        least[at(j)] = least_pivot(least[at(j)], n);
    }
    return least;
}

/// Brings the row with the largest entry of column k, from row k on, to row k of both. False if that is too small.
bool bring_pivot(double* a, std::int64_t n, std::int64_t k, double least, double* b, std::int64_t b_cols)
{
    std::int64_t pivot = k;
    for (std::int64_t i = k + 1; i < n; ++i) {
        pivot = std::fabs(a[k * n + i]) > std::fabs(a[k * n + pivot]) ? i : pivot;
    }
    if (!(std::fabs(a[k * n + pivot]) > least)) {
        return false;
    }
    if (pivot != k) {
        for (std::int64_t j = 0; j < n; ++j) {
            std::swap(a[j * n + k], a[j * n + pivot]);
        }
        for (std::int64_t j = 0; j < b_cols; ++j) {
            std::swap(b[j * n + k], b[j * n + pivot]);
        }
    }
    return true;
}

bool solve_positive_definite_body(std::span<double> a, std::int64_t n, std::span<double> b)
{
    double* const l = a.data();
    for (std::int64_t k = 0; k < n; ++k) {
        const double least = least_pivot(l[k * n + k], n);
        for (std::int64_t j = 0; j < k; ++j) {
            for (std::int64_t i = k; i < n; ++i) {
                l[k * n + i] -= l[j * n + i] * l[j * n + k];
            }
        }
        if (!(l[k * n + k] > least) || !std::isfinite(l[k * n + k])) {
            return false;
        }
        const double root = std::sqrt(l[k * n + k]);
        for (std::int64_t i = k; i < n; ++i) {
            l[k * n + i] /= root;
        }
        b[at(k)] /= root;
        for (std::int64_t i = k + 1; i < n; ++i) {
            b[at(i)] -= l[k * n + i] * b[at(k)];
        }
    }
    for (std::int64_t k = n - 1; k >= 0; --k) {
        for (std::int64_t i = k + 1; i < n; ++i) {
            b[at(k)] -= l[k * n + i] * b[at(i)];
        }
        b[at(k)] /= l[k * n + k];
    }
    return true;
}

bool invert_body(std::span<double> a, std::int64_t n, std::span<double> inverse)
{
    double* const m = a.data();
    double* const x = inverse.data();
    const std::vector<double> least = least_pivots(m, n);
    std::vector<double> factors;
    std::fill_n(x, n * n, 0.0);
    for (std::int64_t i = 0; i < n; ++i) {
        x[i * n + i] = 1;
    }
    for (std::int64_t k = 0; k < n; ++k) {
        if (!bring_pivot(m, n, k, least[at(k)], x, n)) {
            return false;
        }
        // Columns before k are those of the identity by now. Column by column, so that entries lie side by side.
        const double pivot = m[k * n + k];
        factors.assign(m + k * n, m + (k + 1) * n);
        factors[at(k)] = 0;
        const auto eliminate = [&](double* column) {
            const double entry = column[k] /= pivot;
            if (entry != 0) {
                for (std::int64_t i = 0; i < n; ++i) {
                    column[i] -= factors[at(i)] * entry;
                }
            }
        };
        for (std::int64_t j = k; j < n; ++j) {
            eliminate(m + j * n);
        }
        for (std::int64_t j = 0; j < n; ++j) {
            eliminate(x + j * n);
        }
    }
    return true;
}

RMSP_WIDE_BODY bool solve_positive_definite_wide(std::span<double> a, std::int64_t n, std::span<double> b)
{
    return solve_positive_definite_body(a, n, b);
}
RMSP_WIDE_BODY bool invert_wide(std::span<double> a, std::int64_t n, std::span<double> inverse)
{
    return invert_body(a, n, inverse);
}

}  // namespace

bool least_squares(std::span<double> a, std::int64_t rows, std::int64_t cols, std::span<double> b)
{
    double* const entries = a.data();
    for (std::int64_t k = 0; k < cols; ++k) {
        double* const v = entries + k * rows;
        double squares = 0;
        for (std::int64_t i = k; i < rows; ++i) {
            squares += v[i] * v[i];
        }
        const double norm = std::sqrt(squares);
        // Reflections keep the norm of the whole column.
        double before = squares;
        for (std::int64_t i = 0; i < k; ++i) {
            before += v[i] * v[i];
        }
        if (!(norm > least_pivot(std::sqrt(before), rows)) || !std::isfinite(norm)) {
            return false;
        }
        // Reflects column k to (r, 0, ..., 0), with the sign that does not cancel; v is what it is reflected along.
        const double r = v[k] > 0 ? -norm : norm;
        v[k] -= r;
        const double v_squares = squares - 2 * r * (v[k] + r) + r * r;
        const auto reflect = [&](double* column) {
            double along = 0;
            for (std::int64_t i = k; i < rows; ++i) {
                along += v[i] * column[i];
            }
            along *= 2 / v_squares;
            for (std::int64_t i = k; i < rows; ++i) {
                column[i] -= along * v[i];
            }
        };
        for (std::int64_t j = k + 1; j < cols; ++j) {
            reflect(entries + j * rows);
        }
        reflect(b.data());
        v[k] = r;
    }
    for (std::int64_t k = cols - 1; k >= 0; --k) {
        b[at(k)] /= entries[k * rows + k];
        for (std::int64_t i = 0; i < k; ++i) {
            b[at(i)] -= entries[k * rows + i] * b[at(k)];
        }
    }
    return true;
}

bool solve(std::span<double> a, std::int64_t n, std::span<double> b)
{
    double* const m = a.data();
    const std::vector<double> least = least_pivots(m, n);
    for (std::int64_t k = 0; k < n; ++k) {
        if (!bring_pivot(m, n, k, least[at(k)], b.data(), 1)) {
            return false;
        }
        for (std::int64_t i = k + 1; i < n; ++i) {
            m[k * n + i] /= m[k * n + k];
            b[at(i)] -= m[k * n + i] * b[at(k)];
        }
        for (std::int64_t j = k + 1; j < n; ++j) {
            for (std::int64_t i = k + 1; i < n; ++i) {
                m[j * n + i] -= m[k * n + i] * m[j * n + k];
            }
        }
    }
    for (std::int64_t k = n - 1; k >= 0; --k) {
        b[at(k)] /= m[k * n + k];
        for (std::int64_t i = 0; i < k; ++i) {
            b[at(i)] -= m[k * n + i] * b[at(k)];
        }
    }
    return true;
}

bool solve_positive_definite(std::span<double> a, std::int64_t n, std::span<double> b)
{
    return core::has_wide_vectors() ? solve_positive_definite_wide(a, n, b) : solve_positive_definite_body(a, n, b);
}

bool invert(std::span<double> a, std::int64_t n, std::span<double> inverse)
{
    return core::has_wide_vectors() ? invert_wide(a, n, inverse) : invert_body(a, n, inverse);
}

}  // namespace rmsp::matrix
