#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

/// How csr-nnz-split cuts a matrix into tiles of equal work. Plain C++, so that the host tests it.
///
/// A tile is a stretch of the merge path of row ends and nonzeros (Merrill and Garland, "Merge-based parallel sparse
/// matrix-vector multiplication", SC 2016), so neither a long row nor a long run of empty rows makes a tile large. Unlike there, a cut that
/// falls into a short row moves back to the start of the row: only rows longer than `whole_row` are shared by tiles.
namespace rmsp::kernels {

struct TileTuning {
    int threads = 256;
    int nonzeros_per_thread = 4;
    int blocks_per_multiprocessor = 8;
    int alignment = 32;           ///< nonzeros; loads of a tile start at a multiple: 128 bytes of columns
    int longest_whole_row = 128;  ///< longer rows may be cut
    int least_items = 512;        ///< of a tile of a small matrix

    /// Nonzeros that a tile has room for, those before its aligned start included.
    constexpr int capacity() const { return threads * nonzeros_per_thread; }
    /// Nonzeros and row ends from one cut to the next, before cuts move back by up to a row of whole_row.
    constexpr int items(int whole_row) const { return capacity() - alignment - whole_row; }
    bool operator==(const TileTuning&) const = default;
};
inline constexpr TileTuning tile_tuning{};

/// Where a tile begins: it covers nonzeros [nonzero, next.nonzero) and ends rows [row, next.row).
struct TileStart {
    std::int64_t row = 0;
    std::int64_t nonzero = 0;
    std::int32_t cut = -1;  ///< at least 0 if it begins inside the row: the number of this cut, counted over the matrix
    std::int32_t pieces = 0;  ///< of the row up to here; those are of the cuts cut - pieces + 1, ..., cut
};

constexpr std::int64_t tile_count(std::int64_t rows, std::int64_t nnz, int items)
{
    return (rows + nnz + items - 1) / items;
}

/// The cut at position `diagonal` of the merge path; cut is 0 if it is inside a row.
template <class Offsets>
constexpr TileStart tile_start(std::int64_t diagonal, std::int64_t rows, std::int64_t nnz, const Offsets& row_ptr,
                               std::int64_t whole_row)
{
    if (diagonal >= rows + nnz) {
        return {rows, nnz, -1, 0};
    }
    std::int64_t row = 0;  // the last one with row_ptr[row] + row <= diagonal
    std::int64_t end = rows;
    while (end - row > 1) {
        const std::int64_t middle = row + (end - row) / 2;
        if (std::int64_t{row_ptr[middle]} + middle <= diagonal) {
            row = middle;
        } else {
            end = middle;
        }
    }
    const std::int64_t first = row_ptr[row];
    const std::int64_t length = row_ptr[row + 1] - first;
    const std::int64_t into = diagonal - row - first;
    if (into > 0 && into == length) {
        return {row + 1, first + length, -1, 0};
    }
    if (into == 0 || length <= whole_row) {
        return {row, first, -1, 0};
    }
    return {row, first + into, 0, 0};
}

/// Nonzeros and row ends a tile, at most `most`, so that a matrix of few has `tiles` tiles: they are all at work at once, and
/// each is done sooner.
constexpr int tile_items(std::int64_t rows, std::int64_t nnz, std::int64_t tiles, int most,
                         int least = tile_tuning.least_items)
{
    const std::int64_t even = (rows + nnz + tiles - 1) / tiles;
    return static_cast<int>(std::min<std::int64_t>(most, std::max<std::int64_t>(std::min(least, most), even)));
}

/// Numbers the cuts in `starts`, and returns how many there are.
inline std::int32_t number_cuts(std::span<TileStart> starts)
{
    std::int32_t cuts = 0;
    for (std::size_t i = 0; i < starts.size(); ++i) {
        if (starts[i].cut >= 0) {
            starts[i].cut = cuts++;
            starts[i].pieces =
                1 + (i > 0 && starts[i - 1].cut >= 0 && starts[i - 1].row == starts[i].row ? starts[i - 1].pieces : 0);
        }
    }
    return cuts;
}

}  // namespace rmsp::kernels
