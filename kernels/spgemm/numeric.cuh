#pragma once

#include <kernels/spgemm/device.cuh>

/// What the kernels of the numeric phase share.
namespace rmsp::kernels::spgemm {

/// Where the structure of a row of C comes from: the words that were counted, or C's own columns.
struct RowSource {
    const Word* words;   ///< null: columns
    std::int32_t count;  ///< of words
};

template <class T>
__device__ __forceinline__ RowSource source_of(const NumericJob<T>& job, std::int64_t row)
{
    const Extent stored = job.stored[row];
    const std::int64_t place = job.pool != nullptr ? stored.place() : -1;
    return {place < 0 ? nullptr : job.pool + place, stored.count()};
}

__device__ __forceinline__ Word load(const Word* word)
{
    const int2 raw = __ldg(reinterpret_cast<const int2*>(word));
    return {raw.x, static_cast<std::uint32_t>(raw.y)};
}

/// Bits below that of a column in its word.
__device__ __forceinline__ std::uint32_t bits_below(std::int32_t column) { return (1u << (column & 31)) - 1u; }

/// Sum of the lanes of a group up to and with this one. The whole warp takes part.
template <int Lanes>
__device__ __forceinline__ int sum_through(int own, int lane)
{
    int through = own;
#pragma unroll
    for (int d = 1; d < Lanes; d *= 2) {
        const int left = __shfl_up_sync(whole_warp, through, d, Lanes);
        through += lane >= d ? left : 0;
    }
    return through;
}

/// Writes the columns of a word of each lane (mask 0: none) to to[place] and on. The whole warp takes part.
template <int Lanes>
__device__ __forceinline__ void spread(Word word, int place, std::int32_t* to, int lane)
{
    constexpr unsigned few = 8;  // columns of a word: then each lane writes those of its own
    if (__reduce_max_sync(whole_warp, static_cast<unsigned>(__popc(word.mask))) <= few) {
        to += place;
        for (std::uint32_t rest = word.mask; rest != 0; rest &= rest - 1, ++to) {
            *to = word.index * 32 + __ffs(static_cast<int>(rest)) - 1;
        }
        return;
    }
    for (int source = 0; source < Lanes; ++source) {
        const std::int32_t index = __shfl_sync(whole_warp, word.index, source, Lanes);
        const std::uint32_t mask = __shfl_sync(whole_warp, word.mask, source, Lanes);
        const int begin = __shfl_sync(whole_warp, place, source, Lanes);
#pragma unroll
        for (int bit = lane; bit < 32; bit += Lanes) {
            if ((mask >> bit & 1u) != 0) {
                to[begin + __popc(mask & bits_below(bit))] = index * 32 + bit;
            }
        }
    }
}

template <class T>
__device__ __forceinline__ void add(T* to, T value, bool atomic)
{
    if (atomic) {
        atomicAdd(to, value);
    } else {
        *to += value;
    }
}

/// Of an entry of C: where its next product goes, counted there.
template <class T>
__device__ __forceinline__ std::uint32_t next_place(T* counter, bool atomic)
{
    if (atomic) {
        return static_cast<std::uint32_t>(atomicAdd(counter, T{1}));
    }
    const T place = *counter;
    *counter = place + T{1};
    return static_cast<std::uint32_t>(place);
}

}  // namespace rmsp::kernels::spgemm
