#pragma once

#include <cstdint>

#include <kernels/cuda_vector.cuh>
#include <kernels/spmv/column_blocks/column_blocks_build.cuh>
#include <kernels/spmv/column_blocks/layout.hpp>
#include <kernels/spmv/common/stored_values.cuh>

/// The product of kernel "column-blocks", up to the sums of the stretches.
namespace rmsp::kernels::column_blocks {

using cuda::Vector;

template <class T>
struct Blocks {
    const std::int64_t* first_tile;  ///< of each block, and the end
    std::uint32_t blocks;
    std::uint32_t columns;               ///< a block
    std::int64_t used_columns;           ///< places up to the last column that has entries
    const std::int64_t* shares;          ///< first tile of each thread block, and the end
    const void* values;                  ///< block_tile_entries a tile
    T constant;                          ///< all values, where there are none
    const uint4* codes;                  ///< one a lane of each tile
    const std::uint32_t* first_stretch;  ///< of each tile
    T* sums;                             ///< one a stretch
};

/// x in the order of the columns.
template <class T>
__global__ void __launch_bounds__(build_threads)
    order_kernel(const T* __restrict__ x, const std::uint32_t* __restrict__ order, std::int64_t n,
                 T* __restrict__ ordered)
{
    constexpr int each = 4;
    const std::int64_t first = std::int64_t{blockIdx.x} * (build_threads * each) + threadIdx.x;
    std::uint32_t column[each];
    T value[each];
#pragma unroll
    for (int k = 0; k < each; ++k) {
        column[k] = first + k * build_threads < n ? __ldg(order + first + k * build_threads) : 0;
    }
#pragma unroll
    for (int k = 0; k < each; ++k) {
        value[k] = first + k * build_threads < n ? __ldg(x + column[k]) : T{0};
    }
#pragma unroll
    for (int k = 0; k < each; ++k) {
        if (first + k * build_threads < n) {
            ordered[first + k * build_threads] = value[k];
        }
    }
}

/// One warp a tile: products, then sums over stretches, each written once. Values are stored as V.
template <class V, class T>
__device__ __forceinline__ void multiply_tile(const Blocks<T>& a, std::int64_t tile, int lane, const T* slice)
{
    constexpr int n = tile_lane_entries;
    const uint4 packed = __ldcs(a.codes + tile * 32 + lane);
    LaneValues<V, n> stored;
    stored.load(a.values, tile, lane);
    T value[n];
#pragma unroll
    for (int j = 0; j < n; ++j) {
        value[j] = stored.get(j, a.constant);
    }
    const std::uint32_t first = __ldg(a.first_stretch + tile);
    const std::uint32_t words[4] = {packed.x, packed.y, packed.z, packed.w};
    unsigned ends = 0;
#pragma unroll
    for (int j = 0; j < n; ++j) {
        const std::uint32_t code = words[j / 2] >> 16 * (j % 2) & 0xffffu;
        value[j] *= slice[code & (stretch_end - 1u)];
        ends |= (code >> 15) << j;
    }
    // Stretches that end in this lane before its last end; the one that ends first gets what the lanes before carry
    // into it.
    unsigned before = static_cast<unsigned>(__popc(ends));
    const unsigned own_ends = before;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const unsigned left = __shfl_up_sync(0xffffffffu, before, d);
        before += lane >= d ? left : 0;
    }
    T* out = a.sums + first + (before - own_ends);
    T head = 0;
    T sum = 0;
    int at = 0;
#pragma unroll
    for (int j = 0; j < n; ++j) {
        sum += value[j];
        if ((ends >> j & 1u) != 0) {
            if (at == 0) {
                head = sum;
            } else {
                out[at] = sum;
            }
            ++at;
            sum = 0;
        }
    }
    // Sum of the tails of the lanes from the last one with an end up to here.
    const unsigned with_end = __ballot_sync(0xffffffffu, ends != 0) & (0xffffffffu >> (31 - lane));
    const int from = with_end == 0 ? 0 : 31 - __clz(static_cast<int>(with_end));
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const T left = __shfl_up_sync(0xffffffffu, sum, d);
        sum += lane - d >= from ? left : T{0};
    }
    const T carried = __shfl_up_sync(0xffffffffu, sum, 1);
    if (ends != 0) {
        out[0] = lane == 0 ? head : carried + head;
    }
}

/// A thread block goes through its tiles, with the slice of their block of columns in shared memory.
template <class V, class T>
__global__ void __launch_bounds__(column_block_tuning<T>.threads, column_block_tuning<T>.blocks_per_multiprocessor)
    column_blocks_kernel(const Blocks<T> a, const T* __restrict__ ordered)
{
    extern __shared__ __align__(16) unsigned char shared[];
    T* const slice = reinterpret_cast<T*>(shared);
    const int lane = static_cast<int>(threadIdx.x % 32);
    const std::int64_t end = a.shares[blockIdx.x + 1];
    std::int64_t tile = a.shares[blockIdx.x];
    if (tile >= end) {
        return;
    }
    std::uint32_t block = 0;
    std::uint32_t above = a.blocks;
    while (above - block > 1) {
        const std::uint32_t middle = block + (above - block) / 2;
        if (a.first_tile[middle] <= tile) {
            block = middle;
        } else {
            above = middle;
        }
    }
    if (threadIdx.x == 0) {
        slice[a.columns] = T{0};  // what padding reads
    }
    for (; tile < end; ++block) {
        const std::int64_t block_end = min(a.first_tile[block + 1], end);
        const std::int64_t base = std::int64_t{block} * a.columns;
        const int here = static_cast<int>(min(std::int64_t{a.columns}, a.used_columns - base));
        using XVector = typename Vector<T>::type;
        constexpr int width = Vector<T>::width;
        const auto* from = reinterpret_cast<const XVector*>(ordered + base);
#pragma unroll 4
        for (int i = static_cast<int>(threadIdx.x); i < (here + width - 1) / width; i += static_cast<int>(blockDim.x)) {
            reinterpret_cast<XVector*>(slice)[i] = __ldcg(from + i);
        }
        __syncthreads();
        const int warps = static_cast<int>(blockDim.x / 32);
        for (std::int64_t t = tile + threadIdx.x / 32; t < block_end; t += warps) {
            multiply_tile<V>(a, t, lane, slice);
        }
        tile = block_end;
        __syncthreads();
    }
}

}  // namespace rmsp::kernels::column_blocks
