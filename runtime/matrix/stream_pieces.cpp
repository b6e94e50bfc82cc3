#include "runtime/matrix/stream_pieces.hpp"

#include <algorithm>
#include <limits>

namespace rmsp::distributed {
namespace {

// A piece's local row pointers are 32-bit.
constexpr std::int64_t most_entries = std::numeric_limits<std::int32_t>::max();

/// Pieces of one row, whose nonzeros here are [first, end).
void cut_row(std::vector<StreamPiece>& pieces, std::int64_t row, std::int64_t first, std::int64_t end, bool carry,
             std::int64_t longest)
{
    for (std::int64_t i = first; i < end; i += longest) {
        pieces.push_back({row, 1, i, std::min(longest, end - i), carry, i > first});
    }
}

/// `begin_of` gives the first nonzero of a row.
template <class BeginOf>
std::vector<StreamPiece> cut(const BeginOf& begin_of, std::int64_t pointer_bytes, const PartialCsr& part,
                             std::int64_t carry_nnz, std::int64_t chunk_bytes, std::int64_t entry_bytes,
                             const StreamEnds& ends)
{
    chunk_bytes = std::min(chunk_bytes, most_entries * entry_bytes);
    const std::int64_t longest = std::max<std::int64_t>(1, (chunk_bytes - 2 * pointer_bytes) / entry_bytes);

    std::vector<StreamPiece> pieces;
    cut_row(pieces, part.start_row, part.start_idx, part.start_idx + carry_nnz, true, longest);
    std::int64_t row = part.first_owned_row();
    std::int64_t first = part.start_idx + carry_nnz;
    while (row < part.end_row) {
        const auto bytes = [&](std::int64_t nonzeros, std::int64_t rows) {
            return nonzeros * entry_bytes + rows * pointer_bytes;
        };
        std::int64_t most = chunk_bytes;
        if (ends.last > 0) {
            const std::int64_t left = bytes(part.end_idx - first, part.end_row - row + 1);
            most = std::min(most, std::max(ends.last, left - left / 8));
        }
        if (ends.first > 0) {
            most = std::min(most, std::max(ends.first, bytes(first - part.start_idx, row - part.first_owned_row())));
        }
        // The part's last row may go on in the next part.
        const auto end_of = [&](std::int64_t rows_end) {
            return std::min<std::int64_t>(begin_of(rows_end), part.end_idx);
        };
        const auto fits = [&](std::int64_t rows_end) {
            return (end_of(rows_end) - first) * entry_bytes + (rows_end - row + 1) * pointer_bytes <= most;
        };
        std::int64_t end = row;  // the last one that fits
        std::int64_t beyond = part.end_row + 1;
        while (beyond - end > 1) {
            const std::int64_t middle = end + (beyond - end) / 2;
            (fits(middle) ? end : beyond) = middle;
        }
        if (end == row) {
            end = row + 1;
            cut_row(pieces, row, first, end_of(end), false, longest);
        } else {
            pieces.push_back({row, end - row, first, end_of(end) - first, false, false});
        }
        first = end_of(end);
        row = end;
    }
    return pieces;
}

}  // namespace

std::vector<StreamPiece> cut_stream(IndexView row_ptr, const PartialCsr& part, std::int64_t carry_nnz,
                                    std::int64_t chunk_bytes, std::int64_t entry_bytes, const StreamEnds& ends)
{
    return cut([&](std::int64_t row) { return row_ptr[row]; }, static_cast<std::int64_t>(row_ptr.element_bytes()), part,
               carry_nnz, chunk_bytes, entry_bytes, ends);
}

std::vector<StreamPiece> cut_coordinates(IndexView row_idx, CooOrder order, const PartialCsr& part,
                                         std::int64_t carry_nnz, std::int64_t chunk_bytes, std::int64_t entry_bytes,
                                         const StreamEnds& ends)
{
    if (order == CooOrder::unsorted) {
        // Rows mean nothing to what adds the pieces up: the part is cut as one long row is.
        const std::int64_t most = std::min(chunk_bytes / entry_bytes, most_entries);
        std::vector<StreamPiece> pieces;
        cut_row(pieces, part.start_row, part.start_idx, part.end_idx, false, std::max<std::int64_t>(1, most));
        return pieces;
    }
    return row_idx.visit([&](const auto* index) {
        const auto begin_of = [&](std::int64_t row) {
            return std::lower_bound(index + part.start_idx, index + part.end_idx, row) - index;
        };
        return cut(begin_of, 0, part, carry_nnz, chunk_bytes, entry_bytes, ends);
    });
}

}  // namespace rmsp::distributed
