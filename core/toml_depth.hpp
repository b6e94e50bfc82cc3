#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rmsp::core {

/// A place in a text, counted from 1; columns in bytes.
struct TextPosition {
    std::int64_t line = 1;
    std::int64_t column = 1;
};

/// Tables and lists of a TOML document may lie this deep in each other, and a name may have so many parts. Parsers and
/// the destructors of what they build call themselves for each level, until the stack ends.
inline constexpr int most_toml_levels = 32;

/// Where a TOML document goes deeper than that; nothing if it does not.
std::optional<TextPosition> too_deep_toml(std::string_view text) noexcept;

}  // namespace rmsp::core
