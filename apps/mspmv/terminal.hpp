#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <unistd.h>

/// What the terminal of the user is like.
namespace rmsp::mspmv {

enum class Colour { automatic, always, never };

/// What --color and --quiet say; set once, before anything is printed.
struct Appearance {
    Colour colour = Colour::automatic;
    bool quiet = false;  ///< no report on standard output and no progress: what is asked for goes to files
};
Appearance& appearance() noexcept;

/// Columns of a stream (STDOUT_FILENO, STDERR_FILENO): of the variable COLUMNS, else of the terminal, else 120.
std::size_t terminal_width(int stream = STDOUT_FILENO) noexcept;

/// Whether a stream (STDOUT_FILENO, STDERR_FILENO) gets colours: always, never, or where it is a terminal that is not
/// dumb and NO_COLOR is not set (no-color.org).
bool coloured(int stream) noexcept;

/// Lines that are longer than `width` are broken between words. What follows goes below the last column of a table, or
/// two spaces further than the line.
std::string fitted(std::string_view text, std::size_t width);

/// The headings of a report in bold, its verdict in green or red.
std::string painted(std::string_view text);

}  // namespace rmsp::mspmv
