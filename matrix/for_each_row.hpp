#pragma once

#include <algorithm>
#include <cstdint>

#include "core/parallel.hpp"

namespace rmsp::matrix {

/// f(begin, end) for stretches of `each` rows, in parallel; what f throws for the first of them is rethrown.
template <class F>
void for_row_ranges(std::int64_t rows, std::int64_t each, const F& f)
{
    core::parallel_for(core::thread_count(0), (rows + each - 1) / each,
                       [&](std::int64_t chunk) { f(chunk * each, std::min(rows, (chunk + 1) * each)); });
}

/// f(row) for every row, in parallel.
template <class F>
void for_each_row(std::int64_t rows, const F& f)
{
    for_row_ranges(rows, 4096, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
            f(row);
        }
    });
}

}  // namespace rmsp::matrix
