#pragma once

#include <cstdint>

#include <cuda_runtime.h>

/// Sums of the pieces of rows that blocks of one launch share, handed from a block to later ones. A slot says by itself
/// whether it is filled: no fence and no counter. Between launches all slots are empty.
namespace rmsp::kernels::pieces {

/// Marks a sum that is not there yet: a NaN that no sum is stored as.
template <class T>
struct EmptySlot;
template <>
struct EmptySlot<double> {
    using Bits = unsigned long long;
    static constexpr Bits bits = 0xfff8'7a11'9e5e'17edull;
};
template <>
struct EmptySlot<float> {
    using Bits = unsigned;
    static constexpr Bits bits = 0xffc5'e17du;
};
__device__ __forceinline__ unsigned long long to_bits(double v)
{
    return static_cast<unsigned long long>(__double_as_longlong(v));
}
__device__ __forceinline__ unsigned to_bits(float v) { return __float_as_uint(v); }
__device__ __forceinline__ double from_bits(unsigned long long v)
{
    return __longlong_as_double(static_cast<long long>(v));
}
__device__ __forceinline__ float from_bits(unsigned v) { return __uint_as_float(v); }

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
