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

/// Brings the row with the largest entry of column k, from row k on, to row k, also of b. False if that is too small.
bool bring_pivot(double* a, std::int64_t n, std::int64_t k, double least, double* b)
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
        std::swap(b[k], b[pivot]);
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

/// Pivots of neighbouring columns, which are applied to another column together, while it is in the nearest cache.
class PivotPanel {
public:
    static constexpr std::int64_t most = 4;

    PivotPanel(double* a, std::int64_t n) : a_(a), n_(n) {}

    /// Finds those of `count` columns from `first` on, whose pivots have to exceed `least`. False if one does not.
    bool find(std::int64_t first, std::int64_t count, const std::vector<double>& least)
    {
        first_ = first;
        count_ = 0;
        while (count_ < count) {
            const std::int64_t k = first + count_;
            double* const column = a_ + k * n_;
            apply(column);
            std::int64_t row = k;
            for (std::int64_t i = k + 1; i < n_; ++i) {
                row = std::fabs(column[i]) > std::fabs(column[row]) ? i : row;
            }
            if (!(std::fabs(column[row]) > least[at(k)])) {
                return false;
            }
            // Rows change places before anything is eliminated, also in what is eliminated with.
            std::swap(column[k], column[row]);
            for (std::int64_t before = 0; before < count_; ++before) {
                std::swap(factors_[before][at(k)], factors_[before][at(row)]);
            }
            row_[count_] = row;
            value_[count_] = column[k];
            factors_[count_].assign(column, column + n_);
            factors_[count_][at(k)] = 0;
            ++count_;
        }
        return true;
    }

    /// Gauss and Jordan's elimination, pivot by pivot, of a column of A or of what becomes its inverse.
    void apply(double* column) const
    {
        for (std::int64_t p = 0; p < count_; ++p) {
            std::swap(column[first_ + p], column[row_[p]]);
        }
        if (count_ == most && apply_all(column)) {
            return;
        }
        for (std::int64_t p = 0; p < count_; ++p) {
            const double entry = column[first_ + p] /= value_[p];
            if (entry != 0) {
                const double* const factors = factors_[p].data();
                for (std::int64_t i = 0; i < n_; ++i) {
                    column[i] -= factors[i] * entry;
                }
            }
        }
    }

private:
    /// All in one pass, in the same bits. False, and nothing done, where that is not what is to be done.
    bool apply_all(double* column) const
    {
        static_assert(most == 4);
        double own[most];  // what becomes of the rows of the pivots
        double entry[most];
        for (std::int64_t p = 0; p < most; ++p) {
            own[p] = column[first_ + p];
            for (std::int64_t q = 0; q < p; ++q) {
                own[p] -= factors_[q][at(first_ + p)] * entry[q];
            }
            own[p] /= value_[p];
            entry[p] = own[p];
            if (entry[p] == 0) {
                return false;
            }
        }
        for (std::int64_t p = 0; p < most; ++p) {
            for (std::int64_t q = p; q < most; ++q) {
                own[p] -= factors_[q][at(first_ + p)] * entry[q];
            }
        }
        const double* const f0 = factors_[0].data();
        const double* const f1 = factors_[1].data();
        const double* const f2 = factors_[2].data();
        const double* const f3 = factors_[3].data();
        for (std::int64_t i = 0; i < n_; ++i) {
            column[i] = (((column[i] - f0[i] * entry[0]) - f1[i] * entry[1]) - f2[i] * entry[2]) - f3[i] * entry[3];
        }
        std::copy_n(own, most, column + first_);
        return true;
    }

    double* a_;
    std::int64_t n_;
    std::int64_t first_ = 0;
    std::int64_t count_ = 0;
    std::int64_t row_[most] = {};  ///< where each pivot was
    double value_[most] = {};
    std::vector<double> factors_[most];  ///< of its row, for each other
};

bool invert_body(std::span<double> a, std::int64_t n, std::span<double> inverse)
{
    double* const m = a.data();
    double* const x = inverse.data();
    const std::vector<double> least = least_pivots(m, n);
    std::fill_n(x, n * n, 0.0);
    for (std::int64_t i = 0; i < n; ++i) {
        x[i * n + i] = 1;
    }
    PivotPanel panel(m, n);
    for (std::int64_t k = 0; k < n; k += PivotPanel::most) {
        const std::int64_t end = std::min(n, k + PivotPanel::most);
        if (!panel.find(k, end - k, least)) {
            return false;
        }
        // Columns before are those of the identity by now. Column by column, so that entries lie side by side.
        for (std::int64_t j = end; j < n; ++j) {
            panel.apply(m + j * n);
        }
        for (std::int64_t j = 0; j < n; ++j) {
            panel.apply(x + j * n);
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
        if (!bring_pivot(m, n, k, least[at(k)], b.data())) {
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
