#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <toml++/toml.h>

namespace rmsp::core {

/// Tables and lists of a TOML document may lie this deep in each other, and a name may have so many parts. Parsers and
/// the destructors of what they build call themselves for each level, until the stack ends.
inline constexpr int most_toml_levels = 32;

/// What a text is no TOML document for, and where: counted from 1, columns in bytes.
struct TomlError : std::runtime_error {
    TomlError(std::int64_t at_line, std::int64_t at_column, const std::string& why)
        : std::runtime_error(why), line(at_line), column(at_column)
    {
    }
    std::int64_t line;
    std::int64_t column;
};

/// A TOML document. \throws TomlError if it is none, or deeper than most_toml_levels; std::bad_alloc
toml::table parse_toml(std::string_view text);

}  // namespace rmsp::core
