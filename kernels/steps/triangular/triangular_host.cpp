#include <algorithm>

#include <kernels/steps/triangular/triangular.hpp>

#include "core/team.hpp"

namespace rmsp::kernels {
namespace host {
namespace {

/// A level of fewer rows takes less time than threads take to meet.
constexpr std::int64_t fewest_in_parallel = 256;
/// Threads that sleep are woken for so many.
constexpr std::int64_t worth_waking = 4096;

template <class T>
void solve_place(const TriangleShard<T>& triangle, const T* b, T* x, std::int64_t place)
{
    const std::int64_t row = triangle.row[place];
    T rest = b[row];
    for (std::int64_t k = triangle.row_ptr[place]; k < triangle.row_ptr[place + 1]; ++k) {
        rest -= triangle.values[k] * x[triangle.col_idx[k]];
    }
    x[row] = triangle.inverse_diagonal == nullptr ? rest : rest * triangle.inverse_diagonal[place];
}

template <class T>
void solve_levels(const TriangleShard<T>& triangle, const T* b, T* x, void* /*workspace*/, const double* skip,
                  const Context& context)
{
    if (skip != nullptr && *skip != 0) {
        return;
    }
    const auto solve = [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t place = begin; place < end; ++place) {
            solve_place(triangle, b, x, place);
        }
    };
    // A wide level by all threads, a narrow one by the calling thread.
    for (std::int64_t level = 0; level < triangle.level_count; ++level) {
        const std::int64_t begin = triangle.levels[level];
        const std::int64_t count = triangle.levels[level + 1] - begin;
        if (count < fewest_in_parallel) {
            solve(begin, begin + count);
            continue;
        }
        core::share_ranges(count, context.threads, fewest_in_parallel / 4, count >= worth_waking,
                           [&](std::int64_t first, std::int64_t end) { solve(begin + first, begin + end); });
    }
}

void load_triangular(const Context& /*context*/) {}

}  // namespace
}  // namespace host

RMSP_ROW(TriangularLoading, host, .load_triangular = host::load_triangular)

RMSP_VALUE_ROW(TriangularSolves, host, .solve_levels = host::solve_levels<T>)

}  // namespace rmsp::kernels
