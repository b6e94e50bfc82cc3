#pragma once

#include <kernels/spgemm/numeric.cuh>

/// The words of a row that a block takes, where most of its span has none.
namespace rmsp::kernels::spgemm {

/// From a column to its place in the row of C, by two ranks: of its word among those that are there, then of its bit.
struct PackedWords {
    uint2* group = nullptr;  ///< of 32 words side by side: which are there, and how many words come before
    uint2* word = nullptr;   ///< of those that are there: which columns are, and how many entries come before
    std::int32_t first = 0;  ///< index of the first word
    int groups = 0;

    PackedWords() = default;
    /// In shared memory, of so many words from `first_word` on.
    __device__ __forceinline__ PackedWords(uint2* shared, std::int32_t words, std::int32_t first_word)
        : group(shared), word(shared + (words + 31) / 32), first(first_word), groups((words + 31) / 32)
    {
    }
    /// Behind the next barrier words may be put.
    __device__ __forceinline__ void clear(int thread, int threads)
    {
        for (int i = thread; i < groups; i += threads) {
            group[i] = {0, 0};
        }
    }
    /// Notes that word `index` is there, number `at` of them; `previous`: index of the one before, below the first
    /// if there is none.
    __device__ __forceinline__ void mark(std::int32_t index, std::int32_t previous, int at)
    {
        const std::int32_t offset = index - first;
        atomicOr(&group[offset / 32].x, 1u << (offset % 32));
        if (previous < first || (previous - first) / 32 != offset / 32) {
            group[offset / 32].y = static_cast<unsigned>(at);
        }
    }
    __device__ __forceinline__ void put(Word w, std::int32_t previous, int at, int place)
    {
        if (w.mask != 0) {
            word[at] = {w.mask, static_cast<unsigned>(place)};
            mark(w.index, previous, at);
        }
    }
    /// Puts the words, at most `words`, of rising columns, by a block, with a barrier between. `sums` has a number for
    /// each warp.
    template <int Threads>
    __device__ __forceinline__ void put_columns(const std::int32_t* columns, int entries, int words, int* sums)
    {
        constexpr int warps = Threads / 32;
        const int thread = static_cast<int>(threadIdx.x);
        const int lane = thread % 32;
        const int run = ((entries + warps - 1) / warps + 31) / 32 * 32;
        const int begin = min(thread / 32 * run, entries);
        const int end = min(begin + run, entries);
        for (int i = thread; i < words; i += Threads) {
            word[i].x = 0;
        }
        const auto previous_of = [&](int i) { return i > 0 ? columns[i - 1] >> 5 : first - 1; };
        int before = 0;
        for (int i = begin + lane; i < end; i += 32) {
            before += columns[i] >> 5 != previous_of(i) ? 1 : 0;
        }
        before = block_sum_before<Threads>(before, sums);
        for (int i = begin; i < end; i += 32) {
            const bool in = i + lane < end;
            const std::int32_t column = in ? columns[i + lane] : 0;
            const std::int32_t previous = in ? previous_of(i + lane) : 0;
            const bool begins = in && column >> 5 != previous;
            const unsigned those = __ballot_sync(whole_warp, begins);
            const int at = before + __popc(those & (bits_below(lane) | 1u << lane)) - 1;
            if (in) {
                atomicOr(&word[at].x, 1u << (column & 31));
            }
            if (begins) {
                word[at].y = static_cast<unsigned>(i + lane);
                mark(column >> 5, previous, at);
            }
            before += __popc(those);
        }
    }
    /// Of a column that is there, in the word `offset` behind the first.
    __device__ __forceinline__ unsigned find(unsigned offset, std::int32_t column) const
    {
        const uint2 of_group = group[offset / 32];
        const uint2 of_word = word[of_group.y + __popc(of_group.x & bits_below(static_cast<int>(offset)))];
        return of_word.y + __popc(of_word.x & bits_below(column));
    }
};

}  // namespace rmsp::kernels::spgemm
