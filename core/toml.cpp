#include "core/toml.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace rmsp::core {
namespace {

/// Where the string that begins at `at` ends: behind its closing quotes, or at the end of the text.
std::size_t end_of_string(std::string_view text, std::size_t at) noexcept
{
    const char quote = text[at];
    const bool long_string = at + 2 < text.size() && text[at + 1] == quote && text[at + 2] == quote;
    for (std::size_t i = at + (long_string ? 3 : 1); i < text.size(); ++i) {
        if (text[i] == '\\' && quote == '"') {
            ++i;
        } else if (text[i] == quote && !long_string) {
            return i + 1;
        } else if (text[i] == quote && i + 2 < text.size() && text[i + 1] == quote && text[i + 2] == quote) {
            return i + 3;
        } else if (text[i] == '\n' && !long_string) {
            return i;  // not TOML, as the parser will say
        }
    }
    return text.size();
}

/// \throws TomlError where a document goes deeper than most_toml_levels
void check_depth(std::string_view text)
{
    int open = 0;
    int parts = 0;
    std::size_t line_begin = 0;
    std::int64_t line = 1;
    for (std::size_t i = 0; i < text.size(); ++i) {
        switch (text[i]) {
            case '#':
                i = std::min(text.find('\n', i), text.size()) - 1;
                break;
            case '"':
            case '\'':
                for (const std::size_t end = end_of_string(text, i); i + 1 < end; ++i) {
                    if (text[i] == '\n') {
                        ++line;
                        line_begin = i + 1;
                    }
                }
                break;
            case '[':
            case '{':
                ++open;
                parts = 0;
                break;
            case ']':
            case '}':
                open -= open > 0 ? 1 : 0;
                parts = 0;
                break;
            case '.':
                ++parts;
                break;
            case ',':
            case '=':
                parts = 0;
                break;
            case '\n':
                ++line;
                line_begin = i + 1;
                parts = 0;
                break;
            default:
                break;
        }
        if (open > most_toml_levels || parts > most_toml_levels) {
            throw TomlError(
                line, static_cast<std::int64_t>(i - line_begin) + 1,
                fmt::format("more than {} tables, lists or parts of a name in each other", most_toml_levels));
        }
    }
}

}  // namespace

toml::table parse_toml(std::string_view text)
{
    check_depth(text);
    try {
        return toml::parse(text);
    } catch (const toml::parse_error&) {
        // Perhaps for lack of memory: a number is called malformed if the stream that reads it gets none.
    }
    try {
        return toml::parse(text);
    } catch (const toml::parse_error& e) {
        const toml::source_position at = e.source().begin;
        throw TomlError(static_cast<std::int64_t>(at.line), static_cast<std::int64_t>(at.column),
                        std::string(e.description()));
    }
}

}  // namespace rmsp::core
