#pragma once

#include <limits>
#include <type_traits>

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

/// Rows of B that are too long for the virtual warp that found them; `Group`: threads of the block.
template <int Group>
struct LongRows {
    static constexpr int most = Group < 512 ? Group : 512;
    Extent rows[most];
    int count;
};

/// Calls f for the words of these rows, from all threads of a block: a warp for each row, or all of them, in segments
/// that they take in turn, for each one of more than so many words.
template <int Group, int Loads, class F>
__device__ __forceinline__ void for_each_word_of(const LongRows<Group>& found, const Word* words, int thread,
                                                 const F& f)
{
    constexpr int warps = Group / 32;
    constexpr std::int32_t longest_of_a_warp = 2 * Group < 1024 ? 2 * Group : 1024;
    constexpr std::int32_t segment = 32 * Loads;
    const int warp = thread / 32;
    const int lane = thread % 32;
    int turn = 0;
    for (int i = 0; i < found.count; i += 32) {
        const Extent of_lane = i + lane < found.count ? found.rows[i + lane] : Extent(0, 0);
        unsigned those = __ballot_sync(whole_warp, of_lane.count() > longest_of_a_warp);
        for (; those != 0; those &= those - 1) {
            const Extent its = found.rows[i + __ffs(static_cast<int>(those)) - 1];
            const auto* const list = reinterpret_cast<const int2*>(words) + its.place();
            const int segments = (its.count() + segment - 1) / segment;
            for (int s = (warp - turn) & (warps - 1); s < segments; s += warps) {
                for_each_word_of<Loads>(list, s * segment + lane, min(its.count(), (s + 1) * segment), 32, f);
            }
            turn += segments;
        }
    }
    for (int i = warp; i < found.count; i += warps) {
        const Extent its = found.rows[i];
        if (its.count() <= longest_of_a_warp) {
            for_each_word_of<Loads>(reinterpret_cast<const int2*>(words) + its.place(), lane, its.count(), 32, f);
        }
    }
}

/// Calls f for the words of the rows of B that a row of A touches, from the threads of a group, a warp or a block: a
/// virtual warp for each row of B, more of a block for each long one. All threads take part.
template <int Group, class F>
__device__ __forceinline__ void for_each_word(const StructureJob& job, std::int64_t row, std::int32_t words, int thread,
                                              const F& f)
{
    // Loads that a thread issues before it uses the first.
    constexpr int in_flight = 4;
    // A warp's rows are short, and it has no registers to spare.
    constexpr bool of_block = Group > 32;
    constexpr int loads = of_block ? in_flight : 1;
    [[maybe_unused]] __shared__ std::conditional_t<of_block, LongRows<Group>, int> long_rows;
    const std::int64_t begin = job.a.row_ptr[row];
    const auto entries = static_cast<int>(job.a.row_ptr[row + 1] - begin);
    const std::int32_t* const columns = job.a.col_idx + begin;
    const int shift = __ffs(virtual_warp(words, entries)) - 1;
    const int lanes = 1 << shift;
    const int lane = thread & (lanes - 1);
    const int step = Group >> shift;
    const std::int32_t longest = of_block ? max(8 * lanes, 32) : std::numeric_limits<std::int32_t>::max();
    const int batch = of_block ? LongRows<Group>::most : entries;
    for (int first = 0; first < entries; first += batch) {
        const int end = of_block ? min(first + batch, entries) : entries;
        if constexpr (of_block) {
            if (thread == 0) {
                long_rows.count = 0;
            }
            __syncthreads();
        }
        for (int i = first + (thread >> shift); i < end; i += in_flight * step) {
            // Loads that do not depend on each other come together.
            std::int32_t k[in_flight];
            const int2* list[in_flight];
            std::int32_t count[in_flight];
            int2 word[in_flight];
#pragma unroll
            for (int u = 0; u < in_flight; ++u) {
                k[u] = i + u * step < end ? __ldg(columns + i + u * step) : -1;
            }
#pragma unroll
            for (int u = 0; u < in_flight; ++u) {
                count[u] = 0;
                if (k[u] >= 0) {
                    const Extent stored = load(job.b_words + k[u]);
                    count[u] = stored.count();
                    list[u] = reinterpret_cast<const int2*>(job.words) + stored.place();
                    if constexpr (of_block) {
                        if (count[u] > longest) {
                            count[u] = 0;
                            if (lane == 0) {
                                long_rows.rows[atomicAdd(&long_rows.count, 1)] = stored;
                            }
                        }
                    }
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
        if constexpr (of_block) {
            __syncthreads();
            for_each_word_of<Group, loads>(long_rows, job.words, thread, f);
            if (end < entries) {
                __syncthreads();
            }
        }
    }
}

}  // namespace rmsp::kernels::spgemm
