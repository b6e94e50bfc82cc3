#pragma once

#include <limits>

#include <kernels/spgemm/device.cuh>

/// How the rows of B that a row of A touches are walked over in the symbolic phase.
namespace rmsp::kernels::spgemm {

/// Calls f for words first, first + step, ... of a row of B, with `Loads` of them in flight.
template <int Loads, class F>
__device__ __forceinline__ void for_each_word_of(const int2* list, std::int32_t first, std::int32_t count, int step,
                                                 const F& f)
{
    for (std::int32_t j = first; j < count; j += Loads * step) {
        int2 word[Loads];
#pragma unroll
        for (int u = 0; u < Loads; ++u) {
            if (j + u * step < count) {
                word[u] = __ldg(list + j + u * step);
            }
        }
#pragma unroll
        for (int u = 0; u < Loads; ++u) {
            if (j + u * step < count) {
                f(word[u].x, static_cast<std::uint32_t>(word[u].y));
            }
        }
    }
}

/// Calls f for the words of the rows of B that a row of A touches, from the threads of a group: a virtual warp for each
/// row of B, or all of a block, one after the other, for each long one.
template <int Group, class F>
__device__ __forceinline__ void for_each_word(const StructureJob& job, std::int64_t row, std::int32_t words, int thread,
                                              const F& f)
{
    // Loads that a thread issues before it uses the first.
    constexpr int in_flight = 4;
    // A warp's rows are short, and it has no registers to spare.
    constexpr int loads = Group > 32 ? in_flight : 1;
    constexpr std::int32_t longest = Group > 32 ? 2 * Group : std::numeric_limits<std::int32_t>::max();
    const std::int64_t begin = job.a.row_ptr[row];
    const auto entries = static_cast<int>(job.a.row_ptr[row + 1] - begin);
    const std::int32_t* const columns = job.a.col_idx + begin;
    const int shift = __ffs(virtual_warp(words, entries)) - 1;
    const int lanes = 1 << shift;
    const int lane = thread & (lanes - 1);
    const int step = Group >> shift;
    for (int i = thread >> shift; i < entries; i += in_flight * step) {
        // Loads that do not depend on each other come together.
        std::int32_t k[in_flight];
        const int2* list[in_flight];
        std::int32_t count[in_flight];
        int2 word[in_flight];
#pragma unroll
        for (int u = 0; u < in_flight; ++u) {
            k[u] = i + u * step < entries ? __ldg(columns + i + u * step) : -1;
        }
#pragma unroll
        for (int u = 0; u < in_flight; ++u) {
            count[u] = 0;
            if (k[u] >= 0) {
                const Extent stored = load(job.b_words + k[u]);
                count[u] = stored.count() <= longest ? stored.count() : 0;
                list[u] = reinterpret_cast<const int2*>(job.words) + stored.place();
            }
        }
#pragma unroll
        for (int u = 0; u < in_flight; ++u) {
            if (lane < count[u]) {
                word[u] = __ldg(list[u] + lane);
            }
        }
#pragma unroll
        for (int u = 0; u < in_flight; ++u) {
            if (lane < count[u]) {
                f(word[u].x, static_cast<std::uint32_t>(word[u].y));
            }
        }
        if (max(max(count[0], count[1]), max(count[2], count[3])) > lane + lanes) {
#pragma unroll
            for (int u = 0; u < in_flight; ++u) {
                for_each_word_of<loads>(list[u], lane + lanes, count[u], lanes, f);
            }
        }
    }
    for (int i = 0; Group > 32 && i < entries; i += 32) {
        const int at = i + thread % 32;
        const Extent stored = at < entries ? load(job.b_words + __ldg(columns + at)) : Extent(0, 0);
        unsigned those = __ballot_sync(whole_warp, stored.count() > longest);
        for (; those != 0; those &= those - 1) {
            const int source = __ffs(static_cast<int>(those)) - 1;
            const Extent its(__shfl_sync(whole_warp, stored.packed, source));
            for_each_word_of<loads>(reinterpret_cast<const int2*>(job.words) + its.place(), thread, its.count(), Group,
                                    f);
        }
    }
}

}  // namespace rmsp::kernels::spgemm
