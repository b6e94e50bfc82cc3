#pragma once

#include <kernels/spgemm/sort.cuh>

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

/// Writes the columns of a word to `to` and on.
__device__ __forceinline__ void write_columns(Word word, std::int32_t* to)
{
    for (std::uint32_t rest = word.mask; rest != 0; rest &= rest - 1, ++to) {
        *to = word.index * 32 + __ffs(static_cast<int>(rest)) - 1;
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

/// Sum of the warps before this one, of a number of each thread. All threads take part; `sums` may be read still
/// when it is called.
template <int Threads>
__device__ __forceinline__ int block_sum_before(int own, int* sums)
{
    const int warp = static_cast<int>(threadIdx.x) / 32;
    own = __reduce_add_sync(whole_warp, own);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        sums[warp] = own;
    }
    __syncthreads();
    int before = 0;
    for (int w = 0; w < warp; ++w) {
        before += sums[w];
    }
    return before;
}

}  // namespace rmsp::kernels::spgemm
