#pragma once

#include <cuda_runtime.h>

/// Places for numbers that one thread hands to another inside a launch. A slot says by itself whether it is filled, so
/// that neither a fence nor a counter is needed.
namespace rmsp::kernels::slots {

/// Marks a number that is not there yet: a NaN that no number is stored as.
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

}  // namespace rmsp::kernels::slots
