#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rmsp::io {

/// Text with the name that stands for it in messages.
struct Source {
    std::string_view text;
    std::string name;
    std::int64_t lines_before = 0;  ///< of the file, in front of the text

    const char* begin() const noexcept { return text.data(); }
    const char* end() const noexcept { return text.data() + text.size(); }
    /// \throws Error(io) "NAME:LINE:COLUMN: what", where `at` points into the text. Lines are counted only here.
    [[noreturn]] void fail(const char* at, const std::string& what) const;
    /// The token at `at` as messages show it: quoted, cut, unprintable bytes as \xNN; or "the end of the line".
    std::string quote(const char* at) const;
};

struct MatrixMarketHeader {
    enum class Layout : std::uint8_t { coordinate, array };
    enum class Field : std::uint8_t { real, integer, pattern };
    enum class Symmetry : std::uint8_t { general, symmetric, skew };

    Layout layout = Layout::coordinate;
    Field field = Field::real;
    Symmetry symmetry = Symmetry::general;
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t entries = 0;     ///< lines that have to follow
    const char* count = nullptr;  ///< where the size line states (or implies) `entries`
    const char* body = nullptr;   ///< first line after the size line
};

/// Banner, comments and size line. Counts that the rest of the text cannot hold are refused here, before anything is
/// allocated. \throws Error(io)
MatrixMarketHeader parse_matrix_market_header(const Source& source);
/// Of a text of which no more may be there than that: what follows is not looked at. \throws Error(io)
MatrixMarketHeader parse_matrix_market_beginning(const Source& source);
/// \throws Error(io) for more entries than can be in the bytes that follow the size line
void require_room(const Source& source, const MatrixMarketHeader& header, std::int64_t bytes);

}  // namespace rmsp::io
