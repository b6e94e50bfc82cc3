#include "io/matrix_market_header.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/wide.hpp"
#include "io/number.hpp"

#include <rmsp/error.hpp>

namespace rmsp::io {
namespace {

using Layout = MatrixMarketHeader::Layout;
using Field = MatrixMarketHeader::Field;
using Symmetry = MatrixMarketHeader::Symmetry;

/// Walks over the tokens of one line.
struct Line {
    const Source& source;
    const char* p;

    const char* skip_blanks()
    {
        while (p < source.end() && is_blank(*p)) {
            ++p;
        }
        return p;
    }
    bool at_end() { return skip_blanks() == source.end() || *p == '\n'; }
    std::string_view take()
    {
        const char* first = skip_blanks();
        p = token_end(first, source.end());
        return {first, static_cast<std::size_t>(p - first)};
    }
    /// Requires that nothing follows and goes to the next line.
    void finish(const char* what)
    {
        if (!at_end()) {
            source.fail(p, fmt::format("unexpected {} after {}", source.quote(p), what));
        }
        p += p < source.end() ? 1 : 0;
    }
};

bool same_word(std::string_view a, std::string_view b)
{
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
        return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
    });
}

/// Takes the next word, which must be one of the table's.
template <class E, std::size_t N>
E take_word(Line& line, const char* what, const std::array<std::pair<std::string_view, E>, N>& table)
{
    const char* at = line.skip_blanks();
    const std::string_view word = line.take();
    std::string known;
    for (const auto& [name, value] : table) {
        if (same_word(word, name)) {
            return value;
        }
        known += known.empty() ? "" : ", ";
        known += name;
    }
    line.source.fail(at, fmt::format("expected the {} ({}), found {}", what, known, line.source.quote(at)));
}

void parse_banner(Line& line, MatrixMarketHeader& header)
{
    const Source& source = line.source;
    const char* at = line.p;
    if (source.text.empty()) {
        source.fail(at, "the file is empty");
    }
    if (!same_word(line.take(), "%%MatrixMarket")) {
        source.fail(at,
                    fmt::format("not a Matrix Market file: expected \"%%MatrixMarket\", found {}", source.quote(at)));
    }
    at = line.skip_blanks();
    if (const std::string_view object = line.take(); !same_word(object, "matrix")) {
        source.fail(at, fmt::format("expected the object \"matrix\", found {}", source.quote(at)));
    }
    header.layout =
        take_word<Layout, 2>(line, "format", {{{"coordinate", Layout::coordinate}, {"array", Layout::array}}});
    at = line.skip_blanks();
    const char* field_at = at;
    const auto field = take_word<std::optional<Field>, 4>(
        line, "field",
        {{{"real", Field::real}, {"integer", Field::integer}, {"pattern", Field::pattern}, {"complex", std::nullopt}}});
    if (!field) {
        source.fail(at, "complex matrices are not supported; split the file into its real and imaginary parts");
    }
    header.field = *field;
    at = line.skip_blanks();
    const auto symmetry = take_word<std::optional<Symmetry>, 4>(line, "symmetry",
                                                                {{{"general", Symmetry::general},
                                                                  {"symmetric", Symmetry::symmetric},
                                                                  {"skew-symmetric", Symmetry::skew},
                                                                  {"hermitian", std::nullopt}}});
    if (!symmetry) {
        source.fail(at, "hermitian matrices are complex, which is not supported");
    }
    header.symmetry = *symmetry;
    if (header.field == Field::pattern && header.layout == Layout::array) {
        source.fail(field_at, "an array file cannot be a pattern: it has no positions to tell");
    }
    if (header.field == Field::pattern && header.symmetry == Symmetry::skew) {
        source.fail(at, "a pattern cannot be skew-symmetric: it has no signs");
    }
    line.finish("the banner");
}

std::int64_t take_size(Line& line, const char* what)
{
    const Source& source = line.source;
    const char* at = line.skip_blanks();
    std::int64_t value = 0;
    const NumberStatus status = parse_integer(at, source.end(), value, line.p);
    if (status == NumberStatus::overflow) {
        source.fail(at, fmt::format("{} {} does not fit 64 bits", what, source.quote(at)));
    }
    if (status != NumberStatus::ok || line.p != token_end(at, source.end())) {
        source.fail(at, fmt::format("expected {}, found {}", what, source.quote(at)));
    }
    return value;
}

/// \param whole  the source is all of a file
void parse_sizes(Line& line, MatrixMarketHeader& header, bool whole)
{
    const Source& source = line.source;
    const char* at = line.skip_blanks();
    header.count = at;
    header.rows = take_size(line, "the number of rows");
    header.cols = take_size(line, "the number of columns");
    if (header.symmetry != Symmetry::general && header.rows != header.cols) {
        source.fail(at, fmt::format("a symmetric matrix must be square, not {} x {}", header.rows, header.cols));
    }
    if (header.rows == INT64_MAX) {
        source.fail(at, fmt::format("{} rows are too many: their row pointers do not fit 64 bits", header.rows));
    }
    core::uint128 entries = 0;
    if (header.layout == Layout::coordinate) {
        header.count = line.skip_blanks();
        entries = static_cast<core::uint128>(take_size(line, "the number of entries"));
    } else {
        const auto n = static_cast<core::uint128>(header.rows);
        switch (header.symmetry) {
            case Symmetry::general:
                entries = n * static_cast<core::uint128>(header.cols);
                break;
            case Symmetry::symmetric:
                entries = n * (n + 1) / 2;
                break;
            case Symmetry::skew:
                entries = n > 0 ? n * (n - 1) / 2 : 0;
                break;
        }
    }
    line.finish("the size line");

    if (entries > static_cast<core::uint128>(INT64_MAX)) {
        source.fail(header.count,
                    fmt::format("{:.3g} entries cannot be in {}", static_cast<double>(entries),
                                whole ? fmt::format("the {} bytes that follow", source.end() - line.p) : "any file"));
    }
    header.entries = static_cast<std::int64_t>(entries);
}

MatrixMarketHeader parse_header(const Source& source, bool whole)
{
    MatrixMarketHeader header;
    Line line{source, source.begin()};
    parse_banner(line, header);
    for (;;) {
        if (line.skip_blanks() == source.end()) {
            source.fail(line.p, "the file ends before its size line");
        }
        if (*line.p != '%' && *line.p != '\n') {
            break;
        }
        line.p = std::find(line.p, source.end(), '\n');
        line.p += line.p < source.end() ? 1 : 0;
    }
    parse_sizes(line, header, whole);
    header.body = line.p;
    return header;
}

}  // namespace

void Source::fail(const char* at, const std::string& what) const
{
    const char* line_begin = at;
    while (line_begin > begin() && line_begin[-1] != '\n') {
        --line_begin;
    }
    const auto line = lines_before + std::count(begin(), line_begin, '\n') + 1;
    throw Error(ErrorCode::io, fmt::format("{}:{}:{}: {}", name, line, at - line_begin + 1, what));
}

std::string Source::quote(const char* at) const
{
    if (at == end()) {
        return "the end of the file";
    }
    const char* last = token_end(at, end());
    if (last == at) {
        return "the end of the line";
    }
    constexpr std::ptrdiff_t most = 40;
    std::string out = "\"";
    for (const char* p = at; p < std::min(last, at + most); ++p) {
        const auto c = static_cast<unsigned char>(*p);
        out += c > 0x20 && c < 0x7f ? std::string(1, *p) : fmt::format("\\x{:02x}", c);
    }
    return out + (last - at > most ? "...\"" : "\"");
}

MatrixMarketHeader parse_matrix_market_header(const Source& source)
{
    MatrixMarketHeader header = parse_header(source, true);
    require_room(source, header, source.end() - header.body);
    return header;
}

MatrixMarketHeader parse_matrix_market_beginning(const Source& source) { return parse_header(source, false); }

void require_room(const Source& source, const MatrixMarketHeader& header, std::int64_t bytes)
{
    // "1 1\n" is the shortest line of a coordinate file, "1\n" of an array; the last line may lack its line feed.
    const std::int64_t shortest = header.layout == Layout::array ? 2 : header.field == Field::pattern ? 4 : 6;
    if (header.entries > (bytes + 1) / shortest) {
        source.fail(header.count,
                    fmt::format("{} entries cannot be in the {} bytes that follow", header.entries, bytes));
    }
}

}  // namespace rmsp::io
