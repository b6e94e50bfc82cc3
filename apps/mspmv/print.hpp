#pragma once

#include <string_view>

namespace rmsp::mspmv {

/// Writes to standard output and flushes. \throws Error(io) if that fails (a full disk, a closed pipe)
void print(std::string_view text);

/// The same, with lines broken at the terminal's width. For people: not for JSON, TOML, Markdown.
void print_fitted(std::string_view text);

/// Writes to standard error; that it may be closed or full is no error.
void print_error(std::string_view text) noexcept;

}  // namespace rmsp::mspmv
