#pragma once

#include <kernels/spgemm/device.cuh>

namespace rmsp::kernels::spgemm {

/// Ascending order over the Lanes * Keys numbers of each group of `Lanes` threads of a warp; number i is key[i / Lanes] of lane i % Lanes
/// (Batcher's bitonic sort). The whole warp takes part.
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
