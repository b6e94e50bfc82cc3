#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include <core/value_types.hpp>
#include <rmsp/spgemm.hpp>

#include "core/first_error.hpp"
#include "matrix/compare.hpp"

namespace rmsp {
namespace {

/// Entry i of a vector in [-1, 1), by SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
double random_entry(std::int64_t i)
{
    std::uint64_t z = static_cast<std::uint64_t>(i + 1) * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    z ^= z >> 31;
    return static_cast<double>(z >> 11) * 0x1p-52 - 1;
}

/// One row of C, entry by entry: what the products of each add up to, in their order.
template <class T>
void compare_row(const CsrView<T>& a, const CsrView<T>& b, T alpha, const CsrView<T>& c, std::int64_t row,
                 detail::Worst& worst)
{
    struct Sums {
        long double value = 0;
        long double magnitude = 0;
        long double unscaled = 0;  ///< the magnitude without alpha
        std::int64_t products = 0;
    };
    const std::int64_t first = c.row_ptr[row];
    std::vector<std::int64_t> columns;
    for (std::int64_t i = first; i < c.row_ptr[row + 1]; ++i) {
        if (!columns.empty() && c.col_idx[i] <= columns.back()) {
            worst.add_structure_error(row);
            return;
        }
        columns.push_back(c.col_idx[i]);
    }
    std::vector<Sums> sums(columns.size());
    for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
        const std::int64_t k = a.col_idx[i];
        std::size_t at = 0;
        for (std::int64_t j = b.row_ptr[k]; j < b.row_ptr[k + 1]; ++j, ++at) {
            const std::int64_t column = b.col_idx[j];
            if (at >= columns.size() || columns[at] != column) {
                // Columns next to each other in B's row often are in C's.
                at = static_cast<std::size_t>(std::lower_bound(columns.begin(), columns.end(), column) -
                                              columns.begin());
                if (at == columns.size() || columns[at] != column) {
                    worst.add_structure_error(row);
                    return;
                }
            }
            const long double product = static_cast<long double>(a.values[i]) * b.values[j];
            const long double scaled = static_cast<long double>(alpha) * product;
            Sums& sum = sums[at];
            sum.value += scaled;
            sum.magnitude += std::fabs(scaled);
            sum.unscaled += std::fabs(product);
            ++sum.products;
        }
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const Sums& sum = sums[i];
        if (sum.products == 0) {
            worst.add_structure_error(row);
            return;
        }
        detail::Comparison comparison{row, c.values[first + static_cast<std::int64_t>(i)], sum.value, sum.magnitude,
                                      std::fmax(sum.magnitude, sum.unscaled)};
        detail::set_bounds(comparison, sum.products, alpha);
        worst.template add<T>(comparison);
    }
}

}  // namespace

template <class T>
Verification verify_spgemm(const CsrView<T>& a, const CsrView<T>& b, T alpha, const CsrView<T>& c,
                           std::int64_t sampled_rows)
{
    if (a.cols != b.rows || c.rows != a.rows || c.cols != b.cols) {
        throw Error(ErrorCode::usage, fmt::format("C ({} x {}) cannot be the product of A ({} x {}) and B ({} x {})",
                                                  c.rows, c.cols, a.rows, a.cols, b.rows, b.cols));
    }
    validate(c);
    // B v and |B| |v|, and how many products each row adds to an entry of A B v.
    HostVector<long double> bv(static_cast<std::size_t>(b.rows));
    HostVector<long double> magnitudes(static_cast<std::size_t>(b.rows));
#pragma omp parallel for schedule(dynamic, 4096)
    for (std::int64_t row = 0; row < b.rows; ++row) {
        long double sum = 0;
        long double magnitude = 0;
        for (std::int64_t i = b.row_ptr[row]; i < b.row_ptr[row + 1]; ++i) {
            const long double product = b.values[i] * static_cast<long double>(random_entry(b.col_idx[i]));
            sum += product;
            magnitude += std::fabs(product);
        }
        bv[static_cast<std::size_t>(row)] = sum;
        magnitudes[static_cast<std::size_t>(row)] = magnitude;
    }
    detail::Worst worst;
    const std::int64_t samples = std::min(sampled_rows, a.rows);
    core::FirstError error;
#pragma omp parallel
    {
        detail::Worst own;
#pragma omp for schedule(dynamic, 4096) nowait
        for (std::int64_t row = 0; row < a.rows; ++row) {
            long double expected = 0;
            long double magnitude = 0;
            std::int64_t products = 0;
            for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
                const auto k = static_cast<std::size_t>(a.col_idx[i]);
                const long double value = static_cast<long double>(alpha) * a.values[i];
                expected += value * bv[k];
                magnitude += std::fabs(value) * magnitudes[k];
                products += b.row_ptr[a.col_idx[i] + 1] - b.row_ptr[a.col_idx[i]];
            }
            const std::int64_t entries = c.row_ptr[row + 1] - c.row_ptr[row];
            long double sum = 0;
            bool rising = true;
            for (std::int64_t i = c.row_ptr[row]; i < c.row_ptr[row + 1]; ++i) {
                rising = rising && (i == c.row_ptr[row] || c.col_idx[i - 1] < c.col_idx[i]);
                sum += c.values[i] * static_cast<long double>(random_entry(c.col_idx[i]));
            }
            if (!rising || entries > products || (entries == 0 && products > 0)) {
                own.add_structure_error(row);
                continue;
            }
            if (!std::isfinite(sum)) {
                // A vector that makes an entry smaller hides that it may overflow.
                error.guard([&] { compare_row(a, b, alpha, c, row, own); });
                continue;
            }
            detail::Comparison comparison{row, sum, expected, magnitude, magnitude};
            detail::set_bounds(comparison, products, alpha);
            own.template add<T>(comparison);
        }
#pragma omp for schedule(dynamic, 4) nowait
        for (std::int64_t s = 0; s < samples; ++s) {
            error.guard(
                [&] { compare_row(a, b, alpha, c, a.rows / samples * s + a.rows % samples * s / samples, own); });
        }
#pragma omp critical(rmsp_verify_spgemm)
        worst.merge(own);
    }
    error.rethrow();
    return worst.result();
}

#define RMSP_INSTANTIATE(T) \
    template Verification verify_spgemm(const CsrView<T>&, const CsrView<T>&, T, const CsrView<T>&, std::int64_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp
