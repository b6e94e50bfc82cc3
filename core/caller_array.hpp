#pragma once

#include <cstdint>

#include <fmt/format.h>

#include <rmsp/error.hpp>

namespace rmsp::core {

/// \throws Error(usage) if an array that a caller gave for so many entries is null
inline void require_array(const char* name, const void* entries, std::int64_t count)
{
    if (entries == nullptr && count > 0) {
        throw Error(ErrorCode::usage, fmt::format("{} is null; it has to have {} entries", name, count));
    }
}

}  // namespace rmsp::core
