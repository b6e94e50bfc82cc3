#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rmsp::io {

/// Text with the name that stands for it in messages.
struct Source {
    std::string_view text;
    std::string name;

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

}  // namespace rmsp::io
