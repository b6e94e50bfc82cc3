#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/even_cut.hpp"
#include "core/parallel.hpp"
#include "core/read_limit.hpp"
#include "core/value_names.hpp"
#include "io/matrix_market_header.hpp"
#include "io/number.hpp"
#include "io/part_reader.hpp"
#include "matrix/csr_build.hpp"

/// The lines behind the size line of a Matrix Market file: where they can be cut, and what they say.
namespace rmsp::io {

/// Bounds of pieces of the text that begin and end at line boundaries.
inline std::vector<const char*> split_lines(const char* begin, const char* end, std::size_t chunk_bytes)
{
    std::vector<const char*> bounds{begin};
    while (bounds.back() < end) {
        const char* p = bounds.back();
        const auto left = static_cast<std::size_t>(end - p);
        p = left <= chunk_bytes ? end : std::find(p + chunk_bytes, end, '\n');
        bounds.push_back(p < end ? p + 1 : end);
    }
    return bounds;
}

/// The first byte of the next line that is not blank, or `end`.
inline const char* skip_blank_lines(const char* p, const char* end)
{
    while (p < end && (is_blank(*p) || *p == '\n')) {
        ++p;
    }
    return p;
}

inline std::int64_t count_filled_lines(const char* p, const char* end)
{
    std::int64_t count = 0;
    while ((p = skip_blank_lines(p, end)) < end) {
        ++count;
        p = std::find(p, end, '\n');
    }
    return count;
}

/// Position in the lower triangle (or the whole) of the k-th value of an array file, which lists columns one after the
/// other.
struct ArrayPosition {
    std::int64_t row = 0;
    std::int64_t col = 0;

    ArrayPosition(const MatrixMarketHeader& header, std::int64_t k) : header_(header)
    {
        // The last column that begins at or before k. Columns that are empty (the last one of a skew file) begin behind
        // it.
        std::int64_t low = 0;
        std::int64_t high = header.layout == MatrixMarketHeader::Layout::array ? header.cols : 0;
        while (high - low > 1) {
            const std::int64_t middle = low + (high - low) / 2;
            (column_start(middle) <= k ? low : high) = middle;
        }
        col = low;
        row = first_row() + (k - column_start(low));
    }
    void advance()
    {
        if (++row == header_.rows) {
            ++col;
            row = first_row();
        }
    }

private:
    std::int64_t first_row() const
    {
        return header_.symmetry == MatrixMarketHeader::Symmetry::general
                   ? 0
                   : col + (header_.symmetry == MatrixMarketHeader::Symmetry::skew ? 1 : 0);
    }
    std::int64_t column_start(std::int64_t j) const
    {
        switch (header_.symmetry) {
            case MatrixMarketHeader::Symmetry::symmetric:
                return j * header_.rows - j * (j - 1) / 2;
            case MatrixMarketHeader::Symmetry::skew:
                return j * (header_.rows - 1) - j * (j - 1) / 2;
            case MatrixMarketHeader::Symmetry::general:
                break;
        }
        return j * header_.rows;
    }

    const MatrixMarketHeader& header_;
};

template <class I, class T>
class BodyParser {
public:
    BodyParser(const Source& source, const MatrixMarketHeader& header, T pattern_value, core::ReadLimit& limit)
        : source_(source), header_(header), pattern_value_(pattern_value), limit_(limit)
    {
    }

    /// Fills `out` from one chunk and returns its number of filled lines; stops behind the first line too many for the
    /// file. `ordinal` is the number of filled lines before the chunk, of which only array files need to know.
    std::int64_t parse(const char* p, const char* end, std::int64_t ordinal, HostVector<matrix::Entry<I, T>>& out) const
    {
        const bool expands = header_.symmetry != MatrixMarketHeader::Symmetry::general;
        const std::int64_t lines = std::min(std::count(p, end, '\n') + 1, header_.entries);
        const std::size_t most = static_cast<std::size_t>(lines) * (expands ? 2 : 1);
        limit_.take(core::uint128{most} * sizeof out[0], "its entries");
        out.resize(most);
        matrix::Entry<I, T>* to = out.data();
        std::int64_t count = 0;
        ArrayPosition position(header_, header_.layout == MatrixMarketHeader::Layout::array ? ordinal : 0);
        while ((p = skip_blank_lines(p, end)) < end) {
            if (++count > header_.entries) {
                break;
            }
            if (header_.layout == MatrixMarketHeader::Layout::coordinate) {
                p = parse_entry(p, end, *to);
                to = expands ? mirror(to) : to + 1;
            } else {
                T value{};
                p = parse_value(p, end, value);
                if (ordinal + count <= header_.entries && value != T{0}) {
                    *to = {static_cast<I>(position.row), static_cast<I>(position.col), value};
                    to = expands ? mirror(to) : to + 1;
                }
                position.advance();
            }
            while (p < end && is_blank(*p)) {
                ++p;
            }
            if (p < end && *p != '\n') {
                source_.fail(p, fmt::format("unexpected {} after the entry", source_.quote(p)));
            }
        }
        out.resize(static_cast<std::size_t>(to - out.data()));
        return count;
    }

private:
    const char* parse_entry(const char* p, const char* end, matrix::Entry<I, T>& entry) const
    {
        const char* row_at = p;
        p = parse_index(p, end, "row", header_.rows, entry.row);
        p = skip_blanks(p, end);
        p = parse_index(p, end, "column", header_.cols, entry.col);
        if (header_.symmetry != MatrixMarketHeader::Symmetry::general && entry.col > entry.row) {
            source_.fail(row_at,
                         fmt::format("entry ({}, {}) is above the diagonal: a {} file holds the lower triangle only",
                                     entry.row + 1, entry.col + 1, symmetry_name()));
        }
        if (header_.field == MatrixMarketHeader::Field::pattern) {
            entry.value = pattern_value_;
            return p;
        }
        const char* value_at = p = skip_blanks(p, end);
        p = parse_value(p, end, entry.value);
        if (header_.symmetry == MatrixMarketHeader::Symmetry::skew && entry.row == entry.col && entry.value != T{0}) {
            source_.fail(value_at,
                         fmt::format("diagonal entry ({0}, {0}) of a skew-symmetric matrix must be zero, not {1}",
                                     entry.row + 1, source_.quote(value_at)));
        }
        return p;
    }

    const char* parse_index(const char* p, const char* end, const char* what, std::int64_t limit, I& index) const
    {
        std::int64_t value = 0;
        const char* next = p;
        const NumberStatus status = parse_integer(p, end, value, next);
        if (status == NumberStatus::malformed ||
            (next < end && status == NumberStatus::ok && !is_blank(*next) && *next != '\n')) {
            source_.fail(p, fmt::format("expected a {} index, found {}", what, source_.quote(p)));
        }
        if (status == NumberStatus::overflow || value > limit) {
            source_.fail(p, fmt::format("{} index {} is beyond the {} {}s of the size line", what, source_.quote(p),
                                        limit, what));
        }
        if (value == 0) {
            source_.fail(p, fmt::format("{} index 0: indices begin at 1", what));
        }
        index = static_cast<I>(value - 1);
        return next;
    }

    const char* parse_value(const char* p, const char* end, T& value) const
    {
        if (p == end || *p == '\n') {
            source_.fail(p, "expected a value, found the end of the line");
        }
        if (header_.field == MatrixMarketHeader::Field::integer) {
            const char* digits = p + (*p == '-' || *p == '+' ? 1 : 0);
            const char* last = token_end(digits, end);
            if (digits == last || !std::all_of(digits, last, is_digit)) {
                source_.fail(p, fmt::format("expected an integer value, found {}", source_.quote(p)));
            }
        }
        const char* next = p;
        const NumberStatus status = parse_real(p, end, value, next);
        if (status == NumberStatus::overflow) {
            source_.fail(p, fmt::format("value {} is too large for {}", source_.quote(p), core::value_name<T>));
        }
        if (status == NumberStatus::malformed) {
            source_.fail(p, fmt::format("expected a value, found {}", source_.quote(p)));
        }
        return next;
    }

    static const char* skip_blanks(const char* p, const char* end)
    {
        while (p < end && is_blank(*p)) {
            ++p;
        }
        return p;
    }

    /// Adds the entry on the other side of the diagonal, and returns where the next entry goes.
    matrix::Entry<I, T>* mirror(matrix::Entry<I, T>* e) const
    {
        if (e->row == e->col) {
            return e + 1;
        }
        e[1] = {e->col, e->row, header_.symmetry == MatrixMarketHeader::Symmetry::skew ? -e->value : e->value};
        return e + 2;
    }

    const char* symmetry_name() const
    {
        return header_.symmetry == MatrixMarketHeader::Symmetry::skew ? "skew-symmetric" : "symmetric";
    }

    const Source& source_;
    const MatrixMarketHeader& header_;
    T pattern_value_;
    core::ReadLimit& limit_;
};

/// The lines that begin in one of several parts of the bytes behind the size line, read in two steps: lines of an array
/// file have their places by the number of those before.
template <class I, class T>
class BodyPart {
public:
    /// Parses in chunks of about chunk_bytes; 0 chooses by size and threads.
    BodyPart(const Source& source, const MatrixMarketHeader& header, PartNumber number, const ReadOptions& options,
             core::ReadLimit& limit, std::size_t chunk_bytes, int threads)
        : BodyPart(source, header, first_line(source, header, number.part, number.parts),
                   first_line(source, header, number.part + 1, number.parts), number.part + 1 == number.parts, options,
                   limit, chunk_bytes, threads)
    {
    }

    /// The lines [begin, end) of the source; `last`: no other part has lines behind them.
    BodyPart(const Source& source, const MatrixMarketHeader& header, const char* begin, const char* end, bool last,
             const ReadOptions& options, core::ReadLimit& limit, std::size_t chunk_bytes, int threads)
        : source_(source),
          header_(header),
          last_(last),
          progress_(options.progress),
          threads_(threads),
          parser_(source, header, static_cast<T>(options.pattern_value), limit)
    {
        if (chunk_bytes == 0) {
            chunk_bytes =
                std::clamp<std::size_t>(static_cast<std::size_t>(end - begin) / (static_cast<std::size_t>(threads) * 8),
                                        std::size_t{1} << 16, std::size_t{1} << 25);
        }
        bounds_ = split_lines(begin, end, chunk_bytes);
        counts_.resize(bounds_.size() - 1);
        entries_.resize(counts_.size());
    }

    /// Returns the number of filled lines, or of one more than the size line states. \throws Error(io)
    std::int64_t read()
    {
        if (header_.layout == MatrixMarketHeader::Layout::array) {
            for_chunks([&](std::size_t c) { counts_[c] = count_filled_lines(bounds_[c], bounds_[c + 1]); });
        } else {
            parse(0);
        }
        return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
    }

    /// The entries, in the order of the file. `before`: the filled lines of the parts before this one.
    /// \throws Error(io) also if this part has the first line too many, or the last part the end of a file with too few
    std::vector<HostVector<matrix::Entry<I, T>>> finish(std::int64_t before)
    {
        if (header_.layout == MatrixMarketHeader::Layout::array) {
            parse(before);
        }
        check_count(before);
        return std::move(entries_);
    }

private:
    static const char* first_line(const Source& source, const MatrixMarketHeader& header, std::int64_t part,
                                  std::int64_t parts)
    {
        const char* const at = header.body + core::even_cut(source.end() - header.body, parts, part);
        if (at == header.body || at[-1] == '\n') {
            return at;
        }
        const char* const line_end = std::find(at, source.end(), '\n');
        return line_end < source.end() ? line_end + 1 : line_end;
    }

    template <class F>
    void for_chunks(const F& f)
    {
        core::parallel_for(threads_, static_cast<std::int64_t>(counts_.size()),
                           [&](std::int64_t c) { f(static_cast<std::size_t>(c)); });
    }

    void parse(std::int64_t before)
    {
        std::vector<std::int64_t> ordinal{before};
        for (const std::int64_t count : counts_) {
            ordinal.push_back(ordinal.back() + count);
        }
        core::ProgressMeter meter(progress_, "read", bounds_.back() - bounds_.front());
        for_chunks([&](std::size_t c) {
            counts_[c] = parser_.parse(bounds_[c], bounds_[c + 1], ordinal[c], entries_[c]);
            meter.advance(bounds_[c + 1] - bounds_[c]);
        });
    }

    void check_count(std::int64_t total) const
    {
        if (total > header_.entries) {
            return;  // as a part before this one says
        }
        for (std::size_t c = 0; c < counts_.size(); ++c) {
            if (total + counts_[c] > header_.entries) {
                const char* p = skip_blank_lines(bounds_[c], source_.end());
                for (; total < header_.entries; ++total) {
                    p = skip_blank_lines(std::find(p, source_.end(), '\n'), source_.end());
                }
                source_.fail(p, fmt::format("more than the {} entries of the size line", header_.entries));
            }
            total += counts_[c];
        }
        if (last_ && total < header_.entries) {
            source_.fail(source_.end(), fmt::format("the file ends after {} of {} entries", total, header_.entries));
        }
    }

    const Source& source_;
    const MatrixMarketHeader& header_;
    const bool last_;
    const Progress progress_;
    const int threads_;
    const BodyParser<I, T> parser_;
    std::vector<const char*> bounds_;
    std::vector<std::int64_t> counts_;  ///< filled lines of each chunk
    std::vector<HostVector<matrix::Entry<I, T>>> entries_;
};

}  // namespace rmsp::io
