#pragma once

#include <cuda_runtime.h>

namespace rmsp::kernels::cuda {

/// Sum over the `lanes` neighbouring threads of a group (a power of two, at most 32), in the first of them. All 32
/// threads of the warp take part.
template <class T>
__device__ __forceinline__ T group_sum(T value, int lanes)
{
    for (int offset = lanes / 2; offset > 0; offset /= 2) {
        value += __shfl_down_sync(0xffffffffu, value, offset, lanes);
    }
    return value;
}

/// Sum over the block, in thread 0, in an order that depends on the block's size alone. All threads take part;
/// warp_sums has an entry a warp and is free again after the next barrier.
template <int Threads, class T>
__device__ __forceinline__ T block_sum(T value, T* warp_sums)
{
    constexpr int warps = Threads / 32;
    static_assert(Threads % 32 == 0 && warps <= 32);
    value = group_sum(value, 32);
    if (threadIdx.x % 32 == 0) {
        warp_sums[threadIdx.x / 32] = value;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        value = group_sum(static_cast<int>(threadIdx.x) < warps ? warp_sums[threadIdx.x] : T{0}, 32);
    }
    return value;
}

/// block_sum() of the first `count` of some values at once, with one barrier. Thread 32 d returns the sum of value d.
template <int Threads, int Count, class T>
__device__ __forceinline__ T block_sums(const T (&values)[Count], int count, T (&warp_sums)[Count][Threads / 32])
{
    constexpr int warps = Threads / 32;
    static_assert(Threads % 32 == 0 && Count <= warps);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
    for (int d = 0; d < Count; ++d) {
        if (d < count) {
            const T value = group_sum(values[d], 32);
            if (lane == 0) {
                warp_sums[d][warp] = value;
            }
        }
    }
    __syncthreads();
    return warp < count ? group_sum(lane < warps ? warp_sums[warp][lane] : T{0}, 32) : T{0};
}

/// Inclusive sum over a block of 1024 threads; `warp_sums` has an entry a warp, holds the sums up to each warp's end,
/// and is free again after the next barrier.
template <class T>
__device__ __forceinline__ T block_prefix(T value, T* warp_sums)
{
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    for (int offset = 1; offset < 32; offset *= 2) {
        const T left = __shfl_up_sync(0xffffffffu, value, offset);
        value += lane >= offset ? left : T{0};
    }
    if (lane == 31) {
        warp_sums[warp] = value;
    }
    __syncthreads();
    if (warp == 0) {
        T sum = warp_sums[lane];
        for (int offset = 1; offset < 32; offset *= 2) {
            const T left = __shfl_up_sync(0xffffffffu, sum, offset);
            sum += lane >= offset ? left : T{0};
        }
        warp_sums[lane] = sum;
    }
    __syncthreads();
    return value + (warp > 0 ? warp_sums[warp - 1] : T{0});
}

}  // namespace rmsp::kernels::cuda
