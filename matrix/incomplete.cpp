#include "matrix/incomplete.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "core/subscript.hpp"
#include "core/value_types.hpp"
#include "matrix/levels.hpp"

namespace rmsp::matrix {
namespace {

using core::at;

constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

/// The rows of the lower triangle's levels, one level after the other.
template <class T>
struct Schedule {
    explicit Schedule(const SquareBlock<T>& block)
    {
        const HostVector<std::int32_t> level = lower_levels(block);
        const std::int64_t count = level.empty() ? 0 : *std::max_element(level.begin(), level.end()) + 1;
        begin.assign(at(count) + 1, 0);
        for (const std::int32_t l : level) {
            ++begin[at(l) + 1];
        }
        for (std::size_t l = 0; l < at(count); ++l) {
            begin[l + 1] += begin[l];
        }
        std::vector<std::int64_t> next(begin.begin(), begin.end() - 1);
        rows.resize(level.size());
        for (std::size_t row = 0; row < level.size(); ++row) {
            rows[at(next[at(level[row])]++)] = static_cast<std::int32_t>(row);
        }
    }
    std::vector<std::int64_t> begin;
    std::vector<std::int32_t> rows;
};

/// Calls factor_row(row) for all rows, those of one level at the same time. Returns the smallest row for which it
/// returned false, or `none`. Rows behind a failed level are left out.
template <class T, class FactorRow>
std::int64_t for_each_row_by_levels(const Schedule<T>& schedule, int threads, const FactorRow& factor_row)
{
    // A level of fewer rows takes less time than threads take to meet.
    constexpr std::int64_t fewest_in_parallel = 64;
    std::atomic<std::int64_t> failed{none};
    const auto levels = static_cast<std::int64_t>(schedule.begin.size()) - 1;
    for (std::int64_t l = 0; l < levels && failed == none; ++l) {
        const std::int64_t begin = schedule.begin[at(l)];
        const std::int64_t end = schedule.begin[at(l) + 1];
        const std::int64_t parts = end - begin < fewest_in_parallel ? 1 : threads;
        core::parallel_for(static_cast<int>(parts), parts, [&](std::int64_t p) {
            for (std::int64_t i = begin + (end - begin) * p / parts; i < begin + (end - begin) * (p + 1) / parts; ++i) {
                const std::int64_t row = schedule.rows[at(i)];
                if (!factor_row(row)) {
                    std::int64_t seen = failed;
                    while (row < seen && !failed.compare_exchange_weak(seen, row)) {
                    }
                }
            }
        });
    }
    return failed;
}

/// Entries [first, end) of a block.
struct Run {
    std::int64_t first;
    std::int64_t end;
};

/// Calls f(i, j) for the entries i of one row and j of another that have the same column.
template <class T, class F>
void for_each_common(const SquareBlock<T>& block, Run a, Run b, const F& f)
{
    while (a.first < a.end && b.first < b.end) {
        const std::int32_t left = block.col_idx[at(a.first)];
        const std::int32_t right = block.col_idx[at(b.first)];
        if (left == right) {
            f(a.first, b.first);
        }
        a.first += left <= right ? 1 : 0;
        b.first += right <= left ? 1 : 0;
    }
}

/// Attempts with growing shifts: attempt(shift) returns the row whose pivot failed, or `none`.
template <class T, class Attempt>
FactorStatus with_shifts(SquareBlock<T>& block, const Attempt& attempt)
{
    FactorStatus status;
    const HostVector<T> values = block.values;
    for (double shift = 0; shift <= 1; shift = shift == 0 ? 0x1p-10 : 4 * shift) {
        if (status.attempts > 0) {
            std::copy(values.begin(), values.end(), block.values.begin());
        }
        ++status.attempts;
        status.shift = shift;
        const std::int64_t row = attempt(shift);
        if (row == none) {
            status.complete = true;
            return status;
        }
        status.row = row;
    }
    return status;
}

}  // namespace

template <class T>
void add_fill(SquareBlock<T>& block, int level)
{
    if (level <= 0) {
        return;
    }
    constexpr std::int32_t absent = std::numeric_limits<std::int32_t>::max();
    SquareBlock<T> filled;
    filled.rows = block.rows;
    filled.row_ptr.push_back(0);
    std::vector<std::int32_t> levels;                            // of the entries so far
    std::vector<std::int32_t> level_of(at(block.rows), absent);  // of those of the row, by column
    std::vector<T> value_of(at(block.rows));                     // 0 where the row has none
    std::vector<std::int32_t> columns;
    std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> left;  // of the diagonal, to do
    for (std::int64_t row = 0; row < block.rows; ++row) {
        columns.clear();
        const auto put = [&](std::int32_t column, std::int32_t of_entry) {
            if (level_of[at(column)] == absent) {
                columns.push_back(column);
                if (column < row) {
                    left.push(column);
                }
            }
            level_of[at(column)] = std::min(level_of[at(column)], of_entry);
        };
        for (std::int64_t k = block.row_ptr[at(row)]; k < block.row_ptr[at(row) + 1]; ++k) {
            put(block.col_idx[at(k)], 0);
            value_of[at(block.col_idx[at(k)])] = block.values[at(k)];
        }
        while (!left.empty()) {
            const std::int32_t through = left.top();
            left.pop();
            for (std::int64_t k = filled.diagonal[at(through)] + 1; k < filled.row_ptr[at(through) + 1]; ++k) {
                const std::int32_t made = level_of[at(through)] + levels[at(k)] + 1;
                if (made <= level) {
                    put(filled.col_idx[at(k)], made);
                }
            }
        }
        std::sort(columns.begin(), columns.end());
        for (const std::int32_t column : columns) {
            if (column == row) {
                filled.diagonal.push_back(static_cast<std::int64_t>(filled.col_idx.size()));
            }
            filled.col_idx.push_back(column);
            filled.values.push_back(value_of[at(column)]);
            levels.push_back(level_of[at(column)]);
            level_of[at(column)] = absent;
            value_of[at(column)] = T{0};
        }
        filled.row_ptr.push_back(static_cast<std::int64_t>(filled.col_idx.size()));
    }
    block = std::move(filled);
}

template <class T>
FactorStatus factor_ilu0(SquareBlock<T>& block, int threads)
{
    const Schedule schedule(block);
    const int team = core::thread_count(threads);
    const auto attempt = [&](double shift) {
        return for_each_row_by_levels<T>(schedule, team, [&](std::int64_t row) {
            const std::int64_t begin = block.row_ptr[at(row)];
            const std::int64_t end = block.row_ptr[at(row) + 1];
            const std::int64_t own = block.diagonal[at(row)];
            thread_local std::vector<double> values;
            values.resize(at(end - begin));
            double largest = 0;
            for (std::int64_t k = begin; k < end; ++k) {
                values[at(k - begin)] = static_cast<double>(block.values[at(k)]);
                largest = std::max(largest, std::fabs(values[at(k - begin)]));
            }
            double& pivot = values[at(own - begin)];
            pivot += shift * (pivot < 0 ? -largest : largest);
            for (std::int64_t k = begin; k < own; ++k) {
                const std::int64_t upper = block.col_idx[at(k)];
                const double factor =
                    values[at(k - begin)] / static_cast<double>(block.values[at(block.diagonal[at(upper)])]);
                values[at(k - begin)] = factor;
                for_each_common(block, {k + 1, end}, {block.diagonal[at(upper)] + 1, block.row_ptr[at(upper) + 1]},
                                [&](std::int64_t to, std::int64_t j) {
                                    values[at(to - begin)] -= factor * static_cast<double>(block.values[at(j)]);
                                });
            }
            bool good = std::fabs(pivot) > largest * static_cast<double>(std::numeric_limits<T>::epsilon());
            for (std::int64_t k = begin; k < end; ++k) {
                block.values[at(k)] = static_cast<T>(values[at(k - begin)]);
                good = good && std::isfinite(block.values[at(k)]);
            }
            return good && block.values[at(own)] != T{0};
        });
    };
    return with_shifts(block, attempt);
}

template <class T>
FactorStatus factor_ic0(SquareBlock<T>& block, int threads)
{
    for (std::int64_t row = 0; row < block.rows; ++row) {
        if (!(block.values[at(block.diagonal[at(row)])] > T{0})) {
            return {false, 0, 1, row};
        }
    }
    const Schedule schedule(block);
    const int team = core::thread_count(threads);
    const auto attempt = [&](double shift) {
        return for_each_row_by_levels<T>(schedule, team, [&](std::int64_t row) {
            const std::int64_t begin = block.row_ptr[at(row)];
            const std::int64_t own = block.diagonal[at(row)];
            thread_local std::vector<double> values;
            values.resize(at(own - begin));
            const auto diagonal = static_cast<double>(block.values[at(own)]);
            double pivot = diagonal + shift * diagonal;
            bool good = true;
            for (std::int64_t k = begin; k < own; ++k) {
                const std::int64_t other = block.col_idx[at(k)];
                double sum = static_cast<double>(block.values[at(k)]);
                for_each_common(block, {begin, k}, {block.row_ptr[at(other)], block.diagonal[at(other)]},
                                [&](std::int64_t here, std::int64_t j) {
                                    sum -= values[at(here - begin)] * static_cast<double>(block.values[at(j)]);
                                });
                values[at(k - begin)] = sum / static_cast<double>(block.values[at(block.diagonal[at(other)])]);
                pivot -= values[at(k - begin)] * values[at(k - begin)];
            }
            for (std::int64_t k = begin; k < own; ++k) {
                block.values[at(k)] = static_cast<T>(values[at(k - begin)]);
                good = good && std::isfinite(block.values[at(k)]);
            }
            good = good && pivot > diagonal * static_cast<double>(std::numeric_limits<T>::epsilon());
            block.values[at(own)] = static_cast<T>(std::sqrt(std::max(pivot, 0.0)));
            return good && std::isfinite(block.values[at(own)]) && block.values[at(own)] > T{0};
        });
    };
    return with_shifts(block, attempt);
}

template <class T>
FactorStatus factor_gauss_seidel(SquareBlock<T>& block, int threads)
{
    FactorStatus status{.complete = true, .attempts = 1};
    for (std::int64_t row = 0; row < block.rows; ++row) {
        T& diagonal = block.values[at(block.diagonal[at(row)])];
        if (!std::isfinite(diagonal)) {
            return {.complete = false, .attempts = 1, .row = row};
        }
        if (diagonal == T{0}) {
            diagonal = 1;
            ++status.replaced;
        }
    }
    constexpr std::int64_t rows_each = 4096;
    core::parallel_for(core::thread_count(threads), (block.rows + rows_each - 1) / rows_each, [&](std::int64_t part) {
        for (std::int64_t row = part * rows_each; row < std::min(block.rows, (part + 1) * rows_each); ++row) {
            for (std::int64_t k = block.row_ptr[at(row)]; k < block.diagonal[at(row)]; ++k) {
                block.values[at(k)] /= block.values[at(block.diagonal[at(block.col_idx[at(k)])])];
            }
        }
    });
    return status;
}

#define RMSP_INSTANTIATE(T)                                  \
    template void add_fill(SquareBlock<T>&, int);            \
    template FactorStatus factor_ilu0(SquareBlock<T>&, int); \
    template FactorStatus factor_ic0(SquareBlock<T>&, int);  \
    template FactorStatus factor_gauss_seidel(SquareBlock<T>&, int);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::matrix
