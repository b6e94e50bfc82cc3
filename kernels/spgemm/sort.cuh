#pragma once

#include <kernels/spgemm/device.cuh>

namespace rmsp::kernels::spgemm {

/// `Lanes` threads of a warp that take a row, which other groups of the warp do not.
template <int Lanes>
struct LaneGroup {
    int own;           ///< number of the group in its block
    int lane;          ///< of this thread in the group
    int first;         ///< lane of the warp
    bool active;       ///< there is a row
    std::int64_t row;  ///< 0: none
    /// One of the first `count` rows.
    __device__ __forceinline__ explicit LaneGroup(std::int64_t count)
        : own(static_cast<int>(threadIdx.x) / Lanes),
          lane(static_cast<int>(threadIdx.x) % Lanes),
          first(static_cast<int>(threadIdx.x) % 32 - lane)
    {
        const std::int64_t index = std::int64_t{blockIdx.x} * (blockDim.x / Lanes) + own;
        active = index < count;
        row = active ? index : 0;
    }
    /// One of the `count` rows of a list.
    __device__ __forceinline__ LaneGroup(const std::int32_t* list, std::int64_t count) : LaneGroup(count)
    {
        row = active ? list[row] : 0;
    }
    /// In the warp.
    __device__ __forceinline__ unsigned mask() const
    {
        return (Lanes == 32 ? whole_warp : (1u << Lanes % 32) - 1u) << first;
    }
    /// Of the group. The whole warp takes part.
    __device__ __forceinline__ unsigned ballot(bool is) const
    {
        return (__ballot_sync(whole_warp, is) & mask()) >> first;
    }
};

/// Ascending order over the Lanes * Keys numbers of each group of `Lanes` threads of a warp; number i is key[i % Keys]
/// of lane i / Keys, so that most exchanges are within a lane (Batcher's bitonic sort). The whole warp takes part.
template <int Lanes, int Keys>
__device__ __forceinline__ void sort_group(std::uint32_t (&key)[Keys], int lane)
{
    const auto exchange = [&key](int low, int high) {
        const std::uint32_t of_low = key[low];
        key[low] = min(of_low, key[high]);
        key[high] = max(of_low, key[high]);
    };
    // Of two lanes that have the same two numbers: the lower one keeps the less.
    const auto choose = [](std::uint32_t own, std::uint32_t other, bool lower) {
        return (other < own) == lower ? other : own;
    };
#pragma unroll
    for (int size = 2; size <= Lanes * Keys; size *= 2) {
        // Two ascending halves: the first number with the last, and so on, so that none of one half is above the other.
        if (size <= Keys) {
#pragma unroll
            for (int r = 0; r < Keys; ++r) {
                if ((r ^ (size - 1)) > r) {
                    exchange(r, r ^ (size - 1));
                }
            }
        } else {
            const int lanes = size / Keys - 1;
            const bool lower = (lane & (size / Keys / 2)) == 0;
#pragma unroll
            for (int r = 0; r < (Keys + 1) / 2; ++r) {
                const std::uint32_t of_last = __shfl_xor_sync(whole_warp, key[Keys - 1 - r], lanes);
                const std::uint32_t of_first = __shfl_xor_sync(whole_warp, key[r], lanes);
                key[r] = choose(key[r], of_last, lower);
                key[Keys - 1 - r] = choose(key[Keys - 1 - r], of_first, lower);
            }
        }
#pragma unroll
        for (int stride = size / 4; stride > 0; stride /= 2) {
#pragma unroll
            for (int r = 0; r < Keys; ++r) {
                if (stride >= Keys) {
                    const std::uint32_t other = __shfl_xor_sync(whole_warp, key[r], stride / Keys);
                    key[r] = choose(key[r], other, (lane & (stride / Keys)) == 0);
                } else if ((r & stride) == 0) {
                    exchange(r, r + stride);
                }
            }
        }
    }
}

/// Of numbers that a whole warp has sorted: number i goes to key[i / 32] of lane i % 32. `room`: for 32 * Keys numbers,
/// aligned to 16 bytes.
template <int Keys>
__device__ __forceinline__ void deal_sorted(std::uint32_t (&key)[Keys], std::uint32_t* room, int lane)
{
    __syncwarp();
    if constexpr (Keys % 4 == 0) {
#pragma unroll
        for (int r = 0; r < Keys; r += 4) {
            reinterpret_cast<uint4*>(room + lane * Keys)[r / 4] =
                make_uint4(key[r], key[r + 1], key[r + 2], key[r + 3]);
        }
    } else {
#pragma unroll
        for (int r = 0; r < Keys; ++r) {
            room[lane * Keys + r] = key[r];
        }
    }
    __syncwarp();
#pragma unroll
    for (int r = 0; r < Keys; ++r) {
        key[r] = room[r * 32 + lane];
    }
}

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

/// Sum of the threads of a block up to and with this one, and of all of them. All threads take part; of_warps is free
/// again after the next barrier.
template <int Warps>
__device__ __forceinline__ int2 sum_block(int own, int (&of_warps)[Warps])
{
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int through = sum_through<32>(own, static_cast<int>(threadIdx.x) % 32);
    __syncthreads();
    if (threadIdx.x % 32 == 31) {
        of_warps[warp] = through;
    }
    __syncthreads();
    int2 sum{through, 0};
#pragma unroll
    for (int w = 0; w < Warps; ++w) {
        sum.x += w < warp ? of_warps[w] : 0;
        sum.y += of_warps[w];
    }
    return sum;
}

}  // namespace rmsp::kernels::spgemm
