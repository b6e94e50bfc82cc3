#pragma once

#include <algorithm>
#include <cstddef>

namespace rmsp::engine {

/// Calls f(first, count) for disjoint ranges that cover [0, bytes), one for each of `threads` OpenMP threads of the
/// calling worker; all ends but the last are multiples of 64 bytes. f must not throw.
template <class F>
void parallel_ranges(int threads, std::size_t bytes, const F& f)
{
    // One core copies less than this before the sleeping threads of a team have met.
    constexpr std::size_t bytes_worth_a_team = std::size_t{4} << 20;
    if (bytes == 0) {
        return;
    }
    if (threads <= 1 || bytes < bytes_worth_a_team) {
        f(std::size_t{0}, bytes);
        return;
    }
    const std::size_t lines = (bytes + 63) / 64;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t) {
        const std::size_t first = std::min(bytes, lines * static_cast<std::size_t>(t) / threads * 64);
        const std::size_t last = std::min(bytes, lines * (static_cast<std::size_t>(t) + 1) / threads * 64);
        if (last > first) {
            f(first, last - first);
        }
    }
}

}  // namespace rmsp::engine
