#pragma once

#include <kernels/spgemm/device.cuh>

namespace rmsp::kernels::spgemm {

/// `Lanes` threads of a warp that take a row of a list, which other groups of the warp do not.
template <int Lanes>
struct LaneGroup {
    int own;           ///< number of the group in its block
    int lane;          ///< of this thread in the group
    int first;         ///< lane of the warp
    bool active;       ///< there is a row
    std::int64_t row;  ///< 0: none
    __device__ __forceinline__ LaneGroup(const std::int32_t* list, std::int64_t count)
        : own(static_cast<int>(threadIdx.x) / Lanes),
          lane(static_cast<int>(threadIdx.x) % Lanes),
          first(static_cast<int>(threadIdx.x) % 32 - lane)
    {
        const std::int64_t index = std::int64_t{blockIdx.x} * (blockDim.x / Lanes) + own;
        active = index < count;
        row = active ? list[index] : 0;
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

/// Ascending order over the Lanes * Keys numbers of each group of `Lanes` threads of a warp; number i is key[i / Lanes]
/// of lane i % Lanes (Batcher's bitonic sort). The whole warp takes part.
template <int Lanes, int Keys>
__device__ __forceinline__ void sort_group(std::uint32_t (&key)[Keys], int lane)
{
#pragma unroll
    for (int size = 2; size <= Lanes * Keys; size *= 2) {
#pragma unroll
        for (int stride = size / 2; stride > 0; stride /= 2) {
            if (stride >= Lanes) {
#pragma unroll
                for (int r = 0; r < Keys; ++r) {
                    const int partner = r ^ (stride / Lanes);
                    if (partner > r) {
                        const bool up = ((r * Lanes) & size) == 0;
                        const std::uint32_t low = min(key[r], key[partner]);
                        const std::uint32_t high = max(key[r], key[partner]);
                        key[r] = up ? low : high;
                        key[partner] = up ? high : low;
                    }
                }
            } else {
#pragma unroll
                for (int r = 0; r < Keys; ++r) {
                    const std::uint32_t other = __shfl_xor_sync(whole_warp, key[r], stride);
                    const bool up = ((r * Lanes + lane) & size) == 0;
                    const bool lower = (lane & stride) == 0;
                    key[r] = up == lower ? min(key[r], other) : max(key[r], other);
                }
            }
        }
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

}  // namespace rmsp::kernels::spgemm
