#include "io/matrix_market.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/parallel.hpp"
#include "core/value_types.hpp"
#include "io/number.hpp"
#include "matrix/csr_build.hpp"

namespace rmsp::io {
namespace {

using Layout = MatrixMarketHeader::Layout;
using Field = MatrixMarketHeader::Field;
using Symmetry = MatrixMarketHeader::Symmetry;

/// Bounds of pieces of the text that begin and end at line boundaries.
std::vector<const char*> split_lines(const char* begin, const char* end, std::size_t chunk_bytes)
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
const char* skip_blank_lines(const char* p, const char* end)
{
    while (p < end && (is_blank(*p) || *p == '\n')) {
        ++p;
    }
    return p;
}

std::int64_t count_filled_lines(const char* p, const char* end)
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
        std::int64_t high = header.layout == Layout::array ? header.cols : 0;
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
        return header_.symmetry == Symmetry::general ? 0 : col + (header_.symmetry == Symmetry::skew ? 1 : 0);
    }
    std::int64_t column_start(std::int64_t j) const
    {
        switch (header_.symmetry) {
            case Symmetry::symmetric:
                return j * header_.rows - j * (j - 1) / 2;
            case Symmetry::skew:
                return j * (header_.rows - 1) - j * (j - 1) / 2;
            case Symmetry::general:
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
        const bool expands = header_.symmetry != Symmetry::general;
        const std::int64_t lines = std::min(std::count(p, end, '\n') + 1, header_.entries);
        const std::size_t most = static_cast<std::size_t>(lines) * (expands ? 2 : 1);
        limit_.take(core::uint128{most} * sizeof out[0], "its entries");
        out.resize(most);
        matrix::Entry<I, T>* to = out.data();
        std::int64_t count = 0;
        ArrayPosition position(header_, header_.layout == Layout::array ? ordinal : 0);
        while ((p = skip_blank_lines(p, end)) < end) {
            if (++count > header_.entries) {
                break;
            }
            if (header_.layout == Layout::coordinate) {
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
        if (header_.symmetry != Symmetry::general && entry.col > entry.row) {
            source_.fail(row_at,
                         fmt::format("entry ({}, {}) is above the diagonal: a {} file holds the lower triangle only",
                                     entry.row + 1, entry.col + 1, symmetry_name()));
        }
        if (header_.field == Field::pattern) {
            entry.value = pattern_value_;
            return p;
        }
        const char* value_at = p = skip_blanks(p, end);
        p = parse_value(p, end, entry.value);
        if (header_.symmetry == Symmetry::skew && entry.row == entry.col && entry.value != T{0}) {
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
        if (header_.field == Field::integer) {
            const char* digits = p + (*p == '-' || *p == '+' ? 1 : 0);
            const char* last = token_end(digits, end);
            if (digits == last || !std::all_of(digits, last, is_digit)) {
                source_.fail(p, fmt::format("expected an integer value, found {}", source_.quote(p)));
            }
        }
        const char* next = p;
        const NumberStatus status = parse_real(p, end, value, next);
        if (status == NumberStatus::overflow) {
            source_.fail(p, fmt::format("value {} is too large for {}", source_.quote(p),
                                        std::numeric_limits<T>::digits == 24 ? "float" : "double"));
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
        e[1] = {e->col, e->row, header_.symmetry == Symmetry::skew ? -e->value : e->value};
        return e + 2;
    }

    const char* symmetry_name() const { return header_.symmetry == Symmetry::skew ? "skew-symmetric" : "symmetric"; }

    const Source& source_;
    const MatrixMarketHeader& header_;
    T pattern_value_;
    core::ReadLimit& limit_;
};

/// \throws Error(io) at the end of the text, or at the first line too many
void check_count(const Source& source, const MatrixMarketHeader& header, const std::vector<const char*>& bounds,
                 const std::vector<std::int64_t>& counts)
{
    std::int64_t total = 0;
    for (std::size_t c = 0; c < counts.size(); ++c) {
        if (total + counts[c] > header.entries) {
            const char* p = skip_blank_lines(bounds[c], source.end());
            for (; total < header.entries; ++total) {
                p = skip_blank_lines(std::find(p, source.end(), '\n'), source.end());
            }
            source.fail(p, fmt::format("more than the {} entries of the size line", header.entries));
        }
        total += counts[c];
    }
    if (total < header.entries) {
        source.fail(source.end(), fmt::format("the file ends after {} of {} entries", total, header.entries));
    }
}

template <class I, class T>
CsrMatrix<T> parse_body(const Source& source, const MatrixMarketHeader& header, const ReadOptions& options,
                        core::ReadLimit& limit, std::size_t chunk_bytes, int threads)
{
    const std::vector<const char*> bounds = split_lines(header.body, source.end(), chunk_bytes);
    const std::size_t chunk_count = bounds.size() - 1;
    std::vector<std::int64_t> ordinal(chunk_count + 1, 0);
    if (header.layout == Layout::array) {
        core::parallel_for(threads, static_cast<std::int64_t>(chunk_count), [&](std::int64_t i) {
            const auto c = static_cast<std::size_t>(i);
            ordinal[c + 1] = count_filled_lines(bounds[c], bounds[c + 1]);
        });
        for (std::size_t c = 0; c < chunk_count; ++c) {
            ordinal[c + 1] += ordinal[c];
        }
    }
    const BodyParser<I, T> parser(source, header, static_cast<T>(options.pattern_value), limit);
    std::vector<HostVector<matrix::Entry<I, T>>> entries(chunk_count);
    std::vector<std::int64_t> counts(chunk_count);
    core::ProgressMeter meter(options.progress, "read", source.end() - header.body);
    core::parallel_for(threads, static_cast<std::int64_t>(chunk_count), [&](std::int64_t i) {
        const auto c = static_cast<std::size_t>(i);
        counts[c] = parser.parse(bounds[c], bounds[c + 1], ordinal[c], entries[c]);
        meter.advance(bounds[c + 1] - bounds[c]);
    });
    check_count(source, header, bounds, counts);
    return matrix::build_csr<I, T>(entries, header.rows, header.cols, options.sum_duplicates, threads, options.progress,
                                   limit);
}

}  // namespace

template <class T>
CsrMatrix<T> parse_matrix_market(const Source& source, const ReadOptions& options, core::ReadLimit& limit,
                                 std::size_t chunk_bytes)
{
    const int threads = core::thread_count(options.threads);
    const MatrixMarketHeader header = parse_matrix_market_header(source);
    limit.require((static_cast<core::uint128>(header.rows) + 1) * 8,
                  fmt::format("the row pointers of {} rows", header.rows));
    if (chunk_bytes == 0) {
        const auto body = static_cast<std::size_t>(source.end() - header.body);
        chunk_bytes = std::clamp<std::size_t>(body / (static_cast<std::size_t>(threads) * 8), std::size_t{1} << 16,
                                              std::size_t{1} << 25);
    }
    constexpr std::int64_t narrow = INT32_MAX;
    return header.rows <= narrow && header.cols <= narrow
               ? parse_body<std::int32_t, T>(source, header, options, limit, chunk_bytes, threads)
               : parse_body<std::int64_t, T>(source, header, options, limit, chunk_bytes, threads);
}

#define RMSP_INSTANTIATE(T) \
    template CsrMatrix<T> parse_matrix_market(const Source&, const ReadOptions&, core::ReadLimit&, std::size_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::io
