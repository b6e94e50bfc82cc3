#pragma once

#include <cstdint>

/// Searches that kernels do. Plain C++, so that the host tests them.
namespace rmsp::kernels {

/// The column, of [low, end), that nonzero i lies in: the last one with col_ptr[column] <= i. col_ptr[low] <= i.
template <class Offset>
constexpr std::int64_t bisect_columns(const Offset* col_ptr, std::int64_t low, std::int64_t end, std::int64_t i)
{
    while (end - low > 1) {
        const std::int64_t middle = low + (end - low) / 2;
        if (std::int64_t{col_ptr[middle]} <= i) {
            low = middle;
        } else {
            end = middle;
        }
    }
    return low;
}

/// bisect_columns() of [low, high], in a time that grows with the logarithm of the distance from low.
template <class Offset>
constexpr std::int64_t find_column(const Offset* col_ptr, std::int64_t low, std::int64_t high, std::int64_t i)
{
    std::int64_t step = 1;
    while (low + step <= high && std::int64_t{col_ptr[low + step]} <= i) {
        low += step;
        step *= 2;
    }
    return bisect_columns(col_ptr, low, low + step <= high ? low + step : high + 1, i);
}

/// The first of n sorted indices that is not below `index`; n if there is none.
constexpr std::int64_t first_not_below(const std::int32_t* sorted, std::int64_t n, std::int64_t index)
{
    std::int64_t first = 0;
    std::int64_t end = n;
    while (first < end) {
        const std::int64_t middle = first + (end - first) / 2;
        if (sorted[middle] < index) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first;
}

}  // namespace rmsp::kernels
