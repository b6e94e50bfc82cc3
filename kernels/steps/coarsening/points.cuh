#pragma once

#include <kernels/steps/coarsening/rows.cuh>

/// Rows that become points of the coarser matrix.
namespace rmsp::kernels::cuda::coarsening {

/// Of a row, while it is decided which become points of the coarser matrix.
enum State : std::uint8_t { undecided, fine, coarse };

/// Bits that look random and depend on a row's number alone (splitmix64).
__device__ __forceinline__ std::uint64_t hashed(std::int64_t row)
{
    std::uint64_t bits = (static_cast<std::uint64_t>(row) + 1) * 0x9e3779b97f4a7c15U;
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31U);
}

/// Gives coarse rows numbers in the order of the rows, and -1 to the others. Returns how many there are.
inline std::int64_t give_numbers(std::int64_t rows, const std::uint8_t* state, std::int32_t* number,
                                 const Context& context)
{
    for_each(rows, context,
             [state, number] __device__(std::int64_t row) { number[row] = state[row] == coarse ? 1 : 0; });
    const DeviceArray<std::int64_t> before = sums_before(number, rows, context);
    for_each(rows, context, [before = before.data(), number] __device__(std::int64_t row) {
        number[row] = number[row] != 0 ? static_cast<std::int32_t>(before[row]) : -1;
    });
    return fetch(before.data() + rows, context);
}

}  // namespace rmsp::kernels::cuda::coarsening
