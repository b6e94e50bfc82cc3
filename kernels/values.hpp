#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

/// What a value can be stored as without losing a bit. Pure functions, for hosts and GPUs.
namespace rmsp::kernels {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;

template <class T>
constexpr BitsOf<T> bits_of(T v)
{
    return std::bit_cast<BitsOf<T>>(v);
}

/// Whether the value comes back from a float. A NaN's bits need not survive a conversion.
template <class T>
constexpr bool is_float(T v)
{
    if constexpr (sizeof(T) == sizeof(float)) {
        return true;
    } else {
        return (v >= -std::numeric_limits<float>::max() && v <= std::numeric_limits<float>::max() &&
                bits_of(v) == bits_of(static_cast<T>(static_cast<float>(v)))) ||
               v == std::numeric_limits<T>::infinity() || v == -std::numeric_limits<T>::infinity();
    }
}

}  // namespace rmsp::kernels
