#pragma once

#include <cstdint>
#include <string_view>

#include "core/value_types.hpp"

/// What plans, reports and configurations call the types of values.
namespace rmsp::core {

template <class T>
inline constexpr const char* value_name = nullptr;
#define RMSP_VALUE_NAME(T) \
    template <>            \
    inline constexpr const char* value_name<T> = #T;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_VALUE_NAME)
#undef RMSP_VALUE_NAME

/// Bytes of a value of the type that is called so; 0: none is.
constexpr std::int64_t value_bytes(std::string_view name)
{
    std::int64_t bytes = 0;
#define RMSP_VALUE_BYTES(T) bytes = name == value_name<T> ? static_cast<std::int64_t>(sizeof(T)) : bytes;
    RMSP_FOR_EACH_VALUE_TYPE(RMSP_VALUE_BYTES)
#undef RMSP_VALUE_BYTES
    return bytes;
}

}  // namespace rmsp::core
