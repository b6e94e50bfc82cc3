#pragma once

#include <algorithm>
#include <cstdint>

#include <kernels/spmv/packed_tiles/layout.hpp>

/// How csr-nnz-split cuts a matrix into tiles of equal nonzeros. Plain C++, so that the host tests it.
///
/// Tiles and blocks of them are as those of packed-tiles, but of the caller's arrays: a block's nonzeros are where its
/// number says, from block * block_entries on, so that all of its loads start at once. Blocks overlap by a window: a
/// row of up to that many nonzeros belongs to the block in which it begins.
namespace rmsp::kernels {

struct SplitTuning {
    PackedTuning tiles{.most_warp_tiles = 4};
    int alignment = 32;  ///< nonzeros; blocks begin at multiples: 128 bytes of columns
    int widest = 256;    ///< window: a tile
    int row_tiles = 8;   ///< of a mean row, from which tiles are interleaved
    /// Rows without nonzeros from which y is filled with zeros at once, if most rows are such. With 2^20 of them the
    /// second launch costs as much as that saves; with 3.6 million a tenth of the product is saved.
    std::int64_t least_rows_to_fill = std::int64_t{1} << 21;
    bool operator==(const SplitTuning&) const = default;
};
inline constexpr SplitTuning split_tuning{};

struct SplitShape {
    std::int64_t blocks = 0;
    int block_tiles = 0;
    std::int64_t block_entries = 0;  ///< from the first of one block to that of the next
    int window = 0;  ///< that a block reads behind those; 0: a row that begins before the end is cut there
    /// Tiles are read as those in which no row ends, packed_tile_entry(), which most of them are; the others are read
    /// again.
    bool interleaved = false;
};

/// As many blocks as run at once, as packed_shape(). What room its tiles have is window.
/// \param longest_row  an upper bound
constexpr SplitShape split_shape(std::int64_t nnz, std::int64_t rows, std::int64_t longest_row, int compute_units,
                                 const SplitTuning& tuning = split_tuning)
{
    if (nnz == 0) {
        return {};
    }
    const int alignment = tuning.alignment;
    const auto round_up = [&](std::int64_t n) { return (n + alignment - 1) / alignment * alignment; };
    PackedTuning tiles = tuning.tiles;
    tiles.longest_whole_row =
        static_cast<int>(std::min<std::int64_t>(round_up(longest_row), tuning.tiles.longest_whole_row));
    const std::int64_t entries = round_up(packed_shape(nnz, rows, compute_units, tiles).block_entries);
    SplitShape shape;
    shape.block_tiles =
        static_cast<int>((entries + tiles.longest_whole_row + tiles.tile_entries() - 1) / tiles.tile_entries());
    shape.interleaved = nnz >= std::int64_t{tuning.row_tiles} * tiles.tile_entries() * rows;
    // Nearly all long rows are cut all the same, so a window would only be read twice.
    shape.window = shape.interleaved
                       ? 0
                       : static_cast<int>(std::min<std::int64_t>(
                             tuning.widest, std::int64_t{shape.block_tiles} * tiles.tile_entries() - entries));
    shape.block_entries = std::int64_t{shape.block_tiles} * tiles.tile_entries() - shape.window;
    shape.blocks = (nnz + shape.block_entries - 1) / shape.block_entries;
    return shape;
}

/// The cut at nonzero `entry`: where it is, or behind the row that it is in.
template <class Offset>
constexpr PackedStart split_start(std::int64_t entry, std::int64_t rows, std::int64_t nnz, const Offset* row_ptr,
                                  int window)
{
    if (entry >= nnz) {
        return {rows, nnz, nnz};
    }
    const std::int64_t row = bisect_columns(row_ptr, 0, rows, entry);
    const std::int64_t first = row_ptr[row];
    const std::int64_t next = row_ptr[row + 1];
    return entry > first && next - first <= window ? PackedStart{row + 1, next, next} : PackedStart{row, entry, first};
}

}  // namespace rmsp::kernels
