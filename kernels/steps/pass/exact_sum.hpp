#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

/// Sums of doubles without rounding, on the host: whatever the order and the parts in which numbers come, the same
/// number, which is rounded once. A number is added to the digits, of 32 bits each, that its bits belong to; digits
/// carry to the next one later. (U. W. Kulisch: Very fast and exact accumulation of products, Computing 91, 2011)
namespace rmsp::kernels::exact {

/// Digits from 2^-1074 up to beyond 2^1024 times as many numbers as there can be.
inline constexpr int digits = 70;
/// Of a sum: the digits, then the bits of the sum of what is not finite.
inline constexpr int words = digits + 1;
/// So many numbers may be added before carry().
inline constexpr std::int64_t most_between_carries = std::int64_t{1} << 30;

inline void add(std::int64_t* sum, double value)
{
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const auto exponent = static_cast<int>(bits >> 52 & 0x7ff);
    if (exponent == 0x7ff) {
        sum[digits] = std::bit_cast<std::int64_t>(std::bit_cast<double>(sum[digits]) + value);
        return;
    }
    const std::uint64_t fraction =
        (bits & ((std::uint64_t{1} << 52) - 1)) | (exponent > 0 ? std::uint64_t{1} << 52 : 0);
    const int at = exponent > 0 ? exponent - 1 : 0;
    const int shift = at & 31;
    const std::uint64_t low = fraction << shift;
    const auto high = static_cast<std::int64_t>(shift > 0 ? fraction >> (64 - shift) : 0);
    std::int64_t* const to = sum + (at >> 5);
    const std::int64_t sign = (bits >> 63) != 0 ? -1 : 1;
    to[0] += sign * static_cast<std::int64_t>(low & 0xffffffff);
    to[1] += sign * static_cast<std::int64_t>(low >> 32);
    to[2] += sign * high;
}

/// Digits in [0, 2^32) but for the last, which has the sign.
inline void carry(std::int64_t* sum)
{
    std::int64_t over = 0;
    for (int i = 0; i + 1 < digits; ++i) {
        const std::int64_t digit = sum[i] + over;
        sum[i] = digit & 0xffffffff;
        over = digit >> 32;
    }
    sum[digits - 1] += over;
}

/// Digits of one sign, of magnitudes below 2^32: few that are not 0 where the sum is not large. After carry().
inline void sign_digits(std::int64_t* sum)
{
    if (sum[digits - 1] >= 0) {
        return;
    }
    for (int i = 0; i < digits; ++i) {
        sum[i] = -sum[i];
    }
    carry(sum);
    for (int i = 0; i < digits; ++i) {
        sum[i] = -sum[i];
    }
}

/// Adds one sum to another, both after carry() or sign_digits().
inline void merge(std::int64_t* sum, const std::int64_t* other)
{
    for (int i = 0; i < digits; ++i) {
        sum[i] += other[i];
    }
    sum[digits] =
        std::bit_cast<std::int64_t>(std::bit_cast<double>(sum[digits]) + std::bit_cast<double>(other[digits]));
    carry(sum);
}

/// The nearest double, or one beside it; always the same of the same sum. The sum gets digits of one sign.
inline double value(std::int64_t* sum)
{
    if (const auto special = std::bit_cast<double>(sum[digits]); special != 0) {
        return special;  // NaN as well
    }
    carry(sum);
    sign_digits(sum);
    int top = digits - 1;
    while (top > 0 && sum[top] == 0) {
        --top;
    }
    constexpr int least_exponent = -1074;
    double result = 0;
    for (int i = top >= 2 ? top - 2 : 0; i <= top; ++i) {
        result += std::ldexp(static_cast<double>(sum[i]), 32 * i + least_exponent);
    }
    return result;
}

}  // namespace rmsp::kernels::exact
