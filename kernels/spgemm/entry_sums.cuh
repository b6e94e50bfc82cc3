#pragma once

#include <kernels/spgemm/device.cuh>

/// Sums of what lies side by side for an entry of C.
namespace rmsp::kernels::spgemm {

/// The sum of term(at) for `at` in [begin, end), which `Lanes` neighbouring threads add up, a warp where that is much;
/// always in the same order. The first of the lanes has it. The whole warp takes part.
template <class T, int Lanes, class Term>
__device__ __forceinline__ T sum_of_entry(std::uint32_t begin, std::uint32_t end, const Term& term)
{
    constexpr std::uint32_t most_of_lanes = 16 * Lanes;
    constexpr std::uint32_t at_once = 4;  // terms that a thread reads before it adds up the first
    const auto lane = threadIdx.x % 32;
    const bool much = end - begin > most_of_lanes;
    const auto add = [&](std::uint32_t from, std::uint32_t terms, std::uint32_t first, std::uint32_t step) {
        T sum{0};
        for (std::uint32_t i = first; i < terms; i += at_once * step) {
            T read[at_once];
#pragma unroll
            for (std::uint32_t u = 0; u < at_once; ++u) {
                read[u] = i + u * step < terms ? term(from + i + u * step) : T{0};
            }
#pragma unroll
            for (std::uint32_t u = 0; u < at_once; ++u) {
                sum += read[u];
            }
        }
        return sum;
    };
    T sum = add(begin, much ? 0 : end - begin, lane % Lanes, Lanes);
#pragma unroll
    for (int d = Lanes / 2; d > 0; d /= 2) {
        sum += __shfl_xor_sync(whole_warp, sum, d);
    }
    for (unsigned left = __ballot_sync(whole_warp, much && lane % Lanes == 0); left != 0; left &= left - 1) {
        const int whose = __ffs(static_cast<int>(left)) - 1;
        const std::uint32_t its_begin = __shfl_sync(whole_warp, begin, whose);
        const std::uint32_t its_end = __shfl_sync(whole_warp, end, whose);
        T its = add(its_begin, its_end - its_begin, lane, 32);
#pragma unroll
        for (int d = 16; d > 0; d /= 2) {
            its += __shfl_xor_sync(whole_warp, its, d);
        }
        sum = static_cast<int>(lane) == whose ? its : sum;
    }
    return sum;
}

}  // namespace rmsp::kernels::spgemm
