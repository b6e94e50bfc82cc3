#include <algorithm>

#include <kernels/steps/triangular/triangular.hpp>

namespace rmsp::kernels {
namespace host {
namespace {

/// A level of fewer rows takes less time than threads take to meet.
constexpr std::int64_t fewest_in_parallel = 256;

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

bool is_wide(const std::int64_t* levels, std::int64_t level)
{
    return levels[level + 1] - levels[level] >= fewest_in_parallel;
}

/// The levels by all threads of the region that calls it: a wide one by all, a run of narrow ones by one of them.
template <class T>
void solve_together(const TriangleShard<T>& triangle, const T* b, T* x)
{
    std::int64_t level = 0;
    while (level < triangle.level_count) {
        const std::int64_t begin = triangle.levels[level];
        if (is_wide(triangle.levels, level)) {
            const std::int64_t end = triangle.levels[++level];
#pragma omp for schedule(static)
            for (std::int64_t place = begin; place < end; ++place) {
                solve_place(triangle, b, x, place);
            }
            continue;
        }
        while (level < triangle.level_count && !is_wide(triangle.levels, level)) {
            ++level;
        }
        const std::int64_t end = triangle.levels[level];
#pragma omp single
        for (std::int64_t place = begin; place < end; ++place) {
            solve_place(triangle, b, x, place);
        }
    }
}

template <class T>
void solve_levels(const TriangleShard<T>& triangle, const T* b, T* x, void* /*workspace*/, const double* skip,
                  const Context& context)
{
    if (skip != nullptr && *skip != 0) {
        return;
    }
    bool any_wide = false;
    for (std::int64_t level = 0; level < triangle.level_count && !any_wide; ++level) {
        any_wide = is_wide(triangle.levels, level);
    }
#pragma omp parallel num_threads(std::max(context.threads, 1)) if (any_wide)
    solve_together(triangle, b, x);
}

void load_triangular(const Context& /*context*/) {}

}  // namespace
}  // namespace host

RMSP_ROW(TriangularLoading, host, .load_triangular = host::load_triangular)

RMSP_VALUE_ROW(TriangularSolves, host, .solve_levels = host::solve_levels<T>)

}  // namespace rmsp::kernels
