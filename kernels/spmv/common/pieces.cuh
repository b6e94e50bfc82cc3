#pragma once

#include <cstdint>

#include <cuda_runtime.h>
#include <kernels/cuda_slots.cuh>

/// Sums of the pieces of rows that blocks of one launch share, handed from a block to later ones. A slot says by itself
/// whether it is filled: no fence and no counter. Between launches all slots are empty.
namespace rmsp::kernels::pieces {

using slots::EmptySlot;
using slots::from_bits;
using slots::to_bits;

/// The sum of a piece that does not end its row, for the block that does.
template <class T>
__device__ __forceinline__ void store(T* slot, T sum)
{
    auto bits = to_bits(sum);
    bits ^= bits == EmptySlot<T>::bits ? 1u : 0u;
    *reinterpret_cast<volatile typename EmptySlot<T>::Bits*>(slot) = bits;
}

/// What slots are before they are used for the first time.
template <class T>
__device__ __forceinline__ void make_empty(T* slots, int n)
{
    for (int i = 0; i < n; ++i) {
        reinterpret_cast<typename EmptySlot<T>::Bits*>(slots)[i] = EmptySlot<T>::bits;
    }
}

/// Waits for such a sum, and empties its slot for the next launch. Blocks wait for those before them only, which began
/// earlier. \param bits  what was found in the slot
template <class T>
__device__ __forceinline__ T take(T* slot, typename EmptySlot<T>::Bits bits)
{
    auto* const from = reinterpret_cast<volatile typename EmptySlot<T>::Bits*>(slot);
    while (bits == EmptySlot<T>::bits) {
        bits = *from;
    }
    *from = EmptySlot<T>::bits;
    return from_bits(bits);
}

/// A lane's share of the sum of `n` slots, in an order that depends on n alone: take() of each, a few of them in
/// flight.
template <class T>
__device__ __forceinline__ T take_share(T* slots, int n, int lane)
{
    constexpr int in_flight = 4;
    using Bits = typename EmptySlot<T>::Bits;
    T sum = 0;
    for (int first = lane; first < n; first += 32 * in_flight) {
        Bits bits[in_flight];
#pragma unroll
        for (int k = 0; k < in_flight; ++k) {
            if (first + 32 * k < n) {
                bits[k] = *reinterpret_cast<volatile Bits*>(slots + first + 32 * k);
            }
        }
#pragma unroll
        for (int k = 0; k < in_flight; ++k) {
            if (first + 32 * k < n) {
                sum += take(slots + first + 32 * k, bits[k]);
            }
        }
    }
    return sum;
}

}  // namespace rmsp::kernels::pieces
