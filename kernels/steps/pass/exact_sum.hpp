#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include <kernels/steps/pass/program.hpp>

/// Sums of doubles without rounding: whatever the order and the parts in which numbers come, the same number, which is
/// rounded once. A number is added to the digits, of 32 bits each, that its bits belong to; digits carry to the next
/// one later. (U. W. Kulisch: Very fast and exact accumulation of products, Computing 91, 2011)
namespace rmsp::kernels::exact {

/// Digits from 2^-1074 up to beyond 2^1024 times as many numbers as there can be.
inline constexpr int digits = 70;
/// Of a sum: the digits, then which numbers there were that are not finite.
inline constexpr int words = digits + 1;
/// So many numbers may be added before carry().
inline constexpr std::int64_t most_between_carries = std::int64_t{1} << 30;

/// Bits of the last word.
inline constexpr std::int64_t positive_infinity = 1;
inline constexpr std::int64_t negative_infinity = 2;
inline constexpr std::int64_t not_a_number = 4;

/// What a number adds to a sum's last word; 0: it is finite.
RMSP_HOST_DEVICE inline std::int64_t special_of(double value)
{
    const auto bits = std::bit_cast<std::uint64_t>(value);
    if ((bits >> 52 & 0x7ff) != 0x7ff) {
        return 0;
    }
    return (bits << 12) != 0 ? not_a_number : (bits >> 63) != 0 ? negative_infinity : positive_infinity;
}

/// The sum of numbers that are not finite; 0 if there were none.
RMSP_HOST_DEVICE inline double special_value(std::int64_t last_word)
{
    constexpr std::uint64_t infinity = std::uint64_t{0x7ff} << 52;
    constexpr std::uint64_t nan = std::uint64_t{0xfff} << 51;
    switch (last_word) {
        case 0:
            return 0;
        case positive_infinity:
            return std::bit_cast<double>(infinity);
        case negative_infinity:
            return -std::bit_cast<double>(infinity);
        default:
            return std::bit_cast<double>(nan);
    }
}

/// What a finite number adds to three digits, from `at` on.
struct Addend {
    int at;
    std::int64_t part[3];
};

RMSP_HOST_DEVICE inline Addend addend_of(double value)
{
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const auto exponent = static_cast<int>(bits >> 52 & 0x7ff);
    const std::uint64_t fraction =
        (bits & ((std::uint64_t{1} << 52) - 1)) | (exponent > 0 ? std::uint64_t{1} << 52 : 0);
    const int lowest = exponent > 0 ? exponent - 1 : 0;
    const int shift = lowest & 31;
    const std::uint64_t low = fraction << shift;
    const auto high = static_cast<std::int64_t>(shift > 0 ? fraction >> (64 - shift) : 0);
    const std::int64_t sign = (bits >> 63) != 0 ? -1 : 1;
    return {
        lowest >> 5,
        {sign * static_cast<std::int64_t>(low & 0xffffffff), sign * static_cast<std::int64_t>(low >> 32), sign * high}};
}

inline void add(std::int64_t* sum, double value)
{
    if (const std::int64_t special = special_of(value); special != 0) {
        sum[digits] |= special;
        return;
    }
    const Addend addend = addend_of(value);
    for (int k = 0; k < 3; ++k) {
        sum[addend.at + k] += addend.part[k];
    }
}

/// Digits [first, last) in [0, 2^32), and what is above them in the last one, which has the sign.
RMSP_HOST_DEVICE inline void carry(std::int64_t* sum, int first = 0, int last = digits - 1)
{
    std::int64_t over = 0;
    for (int i = first; i < last; ++i) {
        const std::int64_t digit = sum[i] + over;
        sum[i] = digit & 0xffffffff;
        over = digit >> 32;
    }
    sum[last] += over;
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
    sum[digits] |= other[digits];
    carry(sum);
}

/// The nearest double, or one beside it; always the same of the same sum, whose digits are lost.
/// \param first, last  all digits outside [first, last] are 0
RMSP_HOST_DEVICE inline double value(std::int64_t* sum, int first, int last)
{
    if (sum[digits] != 0) {
        return special_value(sum[digits]);
    }
    if (first > last) {
        return 0;
    }
    int top = last + 1 < digits ? last + 1 : last;
    carry(sum, first, top);
    const bool negative = sum[top] < 0;
    if (negative) {
        for (int i = first; i <= top; ++i) {
            sum[i] = -sum[i];
        }
        carry(sum, first, top);
    }
    while (top > first && sum[top] == 0) {
        --top;
    }
    constexpr int least_exponent = -1074;
    double result = 0;
    for (int i = top - 2 > first ? top - 2 : first; i <= top; ++i) {
        result += ::ldexp(static_cast<double>(sum[i]), 32 * i + least_exponent);
    }
    return negative ? -result : result;
}

RMSP_HOST_DEVICE inline double value(std::int64_t* sum) { return value(sum, 0, digits - 1); }

}  // namespace rmsp::kernels::exact
