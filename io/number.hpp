#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace rmsp::io {

enum class NumberStatus : std::uint8_t { ok, malformed, overflow };

inline bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\r'; }
inline bool is_digit(char c) noexcept { return static_cast<unsigned char>(c - '0') < 10; }

/// End of the token that begins at p: the next blank, line feed, or `end`.
inline const char* token_end(const char* p, const char* end) noexcept
{
    while (p < end && !is_blank(*p) && *p != '\n') {
        ++p;
    }
    return p;
}

namespace detail {

/// Whether a number that from_chars() found out of range is too large rather than too small: by the power of ten of its
/// first digit that is not zero.
inline bool exceeds_range(std::string_view token) noexcept
{
    const std::size_t mark = token.find_first_of("eE");
    const std::string_view mantissa = token.substr(0, mark);
    std::int64_t exponent = 0;
    if (mark != std::string_view::npos) {
        std::string_view digits = token.substr(mark + 1);
        const bool negative = digits.starts_with('-');
        if (negative || digits.starts_with('+')) {
            digits.remove_prefix(1);
        }
        const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
        if (parsed.ec == std::errc::result_out_of_range) {
            return !negative;
        }
        exponent = negative ? -exponent : exponent;
    }
    const std::size_t first = mantissa.find_first_of("123456789");
    const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
    return exponent > static_cast<std::int64_t>(first) - static_cast<std::int64_t>(point);
}

/// Any number that from_chars() reads, and also a leading "+" and Fortran's exponent letter D.
template <class T>
NumberStatus parse_real_token(std::string_view token, T& value)
{
    std::string rewritten;
    if (token.starts_with('+')) {
        token.remove_prefix(1);
        if (token.starts_with('-')) {
            return NumberStatus::malformed;
        }
    }
    if (token.find_first_of("dD") != std::string_view::npos) {
        rewritten = token;
        for (char& c : rewritten) {
            c = c == 'd' || c == 'D' ? 'e' : c;
        }
        token = rewritten;
    }
    const auto parsed = std::from_chars(token.data(), token.data() + token.size(), value);
    if (parsed.ec == std::errc::invalid_argument || parsed.ptr != token.data() + token.size()) {
        return NumberStatus::malformed;
    }
    if (parsed.ec == std::errc::result_out_of_range) {
        if (exceeds_range(token)) {
            return NumberStatus::overflow;
        }
        value = token.starts_with('-') ? -T{0} : T{0};
    }
    return NumberStatus::ok;
}

}  // namespace detail

/// Reads the token at p as a correctly rounded decimal; numbers too small for T become zero. On success `next` is the
/// end of the token.
template <class T>
NumberStatus parse_real(const char* p, const char* end, T& value, const char*& next)
{
    // A mantissa that T holds exactly, times or divided by a power of ten that T holds exactly, is rounded once and so
    // right (Clinger, "How to read floating point numbers accurately", 1990). Everything else goes to from_chars().
    constexpr int exact_power = std::is_same_v<T, float> ? 10 : 22;
    constexpr std::uint64_t exact_mantissa = std::uint64_t{1} << std::numeric_limits<T>::digits;
    static constexpr std::array<T, 23> powers = [] {
        std::array<T, 23> table{};
        T power = 1;
        for (int i = 0; i <= exact_power; ++i, power *= T{10}) {
            table[static_cast<std::size_t>(i)] = power;
        }
        return table;
    }();

    const char* q = p;
    const bool negative = q < end && *q == '-';
    if (negative || (q < end && *q == '+')) {
        ++q;
    }
    std::uint64_t mantissa = 0;
    const char* digits = q;
    for (; q < end && is_digit(*q); ++q) {
        mantissa = mantissa * 10 + static_cast<std::uint64_t>(*q - '0');
    }
    std::int64_t count = q - digits;
    std::int64_t exponent = 0;
    if (q < end && *q == '.') {
        const char* fraction = ++q;
        for (; q < end && is_digit(*q); ++q) {
            mantissa = mantissa * 10 + static_cast<std::uint64_t>(*q - '0');
        }
        exponent = fraction - q;
        count -= exponent;
    }
    bool fast = count > 0 && count <= 19 && mantissa <= exact_mantissa;
    if (fast && q < end && (*q == 'e' || *q == 'E' || *q == 'd' || *q == 'D')) {
        ++q;
        const bool down = q < end && *q == '-';
        if (down || (q < end && *q == '+')) {
            ++q;
        }
        const char* first = q;
        std::int64_t power = 0;
        for (; q < end && is_digit(*q) && power < 10000; ++q) {
            power = power * 10 + (*q - '0');
        }
        fast = q > first;
        exponent += down ? -power : power;
    }
    if (fast && (q == end || is_blank(*q) || *q == '\n') && exponent >= -exact_power && exponent <= exact_power) {
        const T m = static_cast<T>(mantissa);
        const T magnitude = exponent < 0 ? m / powers[static_cast<std::size_t>(-exponent)]
                                         : m * powers[static_cast<std::size_t>(exponent)];
        value = negative ? -magnitude : magnitude;
        next = q;
        return NumberStatus::ok;
    }
    next = token_end(p, end);
    return detail::parse_real_token({p, static_cast<std::size_t>(next - p)}, value);
}

/// Reads an unsigned decimal integer without a sign; stops at the first other character.
inline NumberStatus parse_integer(const char* p, const char* end, std::int64_t& value, const char*& next) noexcept
{
    const char* q = p;
    std::uint64_t v = 0;
    for (; q < end && is_digit(*q) && q - p < 18; ++q) {
        v = v * 10 + static_cast<std::uint64_t>(*q - '0');
    }
    next = q;
    if (q == p) {
        return NumberStatus::malformed;
    }
    constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
    for (; q < end && is_digit(*q); ++q) {
        const auto digit = static_cast<std::uint64_t>(*q - '0');
        if (v > (largest - digit) / 10) {
            return NumberStatus::overflow;
        }
        v = v * 10 + digit;
    }
    next = q;
    value = static_cast<std::int64_t>(v);
    return NumberStatus::ok;
}

}  // namespace rmsp::io
