#pragma once

#include <cstdint>

namespace rmsp::core {

/// Cut k, in [0, parts], of n items into equal parts. Without overflow where n is large.
constexpr std::int64_t even_cut(std::int64_t n, std::int64_t parts, std::int64_t k)
{
    return n / parts * k + n % parts * k / parts;
}

}  // namespace rmsp::core
