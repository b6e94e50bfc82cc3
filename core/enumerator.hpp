#pragma once

#include <cstdint>
#include <type_traits>

#include <fmt/format.h>

#include <rmsp/error.hpp>

namespace rmsp::core {

/// \throws Error(usage) naming the option and the value, if an enumerator that a caller gave is none of [0, count)
inline void require_enumerator(const char* name, std::int64_t value, std::int64_t count)
{
    if (value < 0 || value >= count) {
        throw Error(ErrorCode::usage, fmt::format("{} is {}, which is not one of 0 to {}", name, value, count - 1));
    }
}

/// \throws Error(usage) unless `value` is of an enumeration whose last enumerator is `last`.
template <class E>
requires std::is_enum_v<E>
void require_enumerator(const char* name, E value, E last)
{
    require_enumerator(name, static_cast<std::int64_t>(value), static_cast<std::int64_t>(last) + 1);
}

}  // namespace rmsp::core
