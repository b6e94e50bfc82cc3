#pragma once

#include <cstdint>
#include <vector>

#include <rmsp/convert.hpp>
#include <rmsp/matrix.hpp>
#include <rmsp/partition.hpp>

/// The pieces in which a part of a streamed matrix comes to its device.
namespace rmsp::distributed {

/// A stretch of a device's part that is copied and multiplied as one.
struct StreamPiece {
    std::int64_t first_row = 0;
    std::int64_t rows = 0;
    std::int64_t first = 0;  ///< nonzero
    std::int64_t nnz = 0;
    bool carry = false;      ///< of the row that the part shares with its predecessor
    bool continues = false;  ///< of a row that the piece before began: adds to what that one found
    bool operator==(const StreamPiece&) const = default;
};

/// Bytes of the smallest pieces at the ends of a part; 0: as large as the others.
struct StreamEnds {
    std::int64_t last =
        0;  ///< each leaves an eighth of what is left, so that it is multiplied while the next one comes
    std::int64_t first = 0;  ///< each is at most all before it: x, which follows the first ones on the link, waits less
};

/// Cuts a part into pieces of at most `chunk_bytes` of row pointers, columns and values: between rows, and inside a row
/// only where it is longer than a chunk. Such a row is cut at distances from its start that do not depend on the part.
/// The first carry_nnz nonzeros belong to the shared row. `entry_bytes` are of one column and its value.
std::vector<StreamPiece> cut_stream(IndexView row_ptr, const PartialCsr& part, std::int64_t carry_nnz,
                                    std::int64_t chunk_bytes, std::int64_t entry_bytes, const StreamEnds& ends = {});

/// Pieces of coordinates, which have a row index with each entry instead of row pointers: `entry_bytes` are of a row,
/// a column and a value. Those sorted by row are cut between rows; unsorted ones anywhere, as if they were one row.
std::vector<StreamPiece> cut_coordinates(IndexView row_idx, CooOrder order, const PartialCsr& part,
                                         std::int64_t carry_nnz, std::int64_t chunk_bytes, std::int64_t entry_bytes,
                                         const StreamEnds& ends = {});

}  // namespace rmsp::distributed
