#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include <kernels/spmv/common/search.hpp>
#include <kernels/spmv/common/tiles.hpp>

/// How kernel "packed-tiles" lays out a matrix. Plain C++, so that the host tests it.
///
/// Entries are the nonzeros by rows, and one without a value for each empty row, so that rows follow each other without
/// gaps. A tile is what one warp multiplies in one step: 32 lanes of `lane_entries` consecutive entries each. A block
/// has a stretch of entries, and as many tiles as the largest of them. Everything in a tile is where its number says,
/// so that all of its loads start at once: there are no row pointers, but a bit for each entry that ends a row.
namespace rmsp::kernels {

struct PackedTuning {
    int threads = 256;
    int lane_entries = tile_entries_in_a_step / 32;
    int blocks_per_multiprocessor = 4;
    int longest_whole_row =
        128;                   ///< entries; longer rows may be shared by blocks, unless there is room for them anyway
    int most_warp_tiles = 16;  ///< of larger matrices, whose blocks come in several waves

    constexpr int warps() const { return threads / 32; }
    constexpr int tile_entries() const { return 32 * lane_entries; }
    bool operator==(const PackedTuning&) const = default;
};
inline constexpr PackedTuning packed_tuning{};

/// Columns of a tile are counted from its first in 16 bits where those suffice. Those of other tiles, the wide ones,
/// are counted from 0, and have so many bits more, kept apart.
inline constexpr int packed_low_bits = 16;
constexpr int packed_high_bits(std::int64_t cols) { return cols < std::int64_t{1} << 20 ? 4 : 16; }

/// The code of a column that stands for none.
constexpr std::uint32_t packed_no_column(int bits) { return 0xffffffffu >> (32 - bits); }

static_assert(packed_no_column(packed_low_bits) == no_tile_column);

/// What a tile's lanes share.
struct PackedHeader {
    std::int32_t row = 0;     ///< the first that ends in this tile or later; complemented where the next tile is wide
    std::int32_t column = 0;  ///< from which columns are counted; complemented where some entries have none
};
/// In place of the first column: the tile is wide.
inline constexpr std::int32_t wide_columns = std::numeric_limits<std::int32_t>::min();

constexpr std::int32_t complement_if(bool condition, std::int32_t number) { return condition ? ~number : number; }
/// What complement_if() was given.
constexpr std::int32_t without_complement(std::int32_t number) { return complement_if(number < 0, number); }

/// Bit k: entry k of the lane ends a row; above them, how many rows end in the lanes before.
constexpr std::uint16_t packed_ends(unsigned ends, int rows_before)
{
    return static_cast<std::uint16_t>(ends | static_cast<unsigned>(rows_before) << packed_tuning.lane_entries);
}

/// Of what packed_ends() makes: the bits, and the rows before.
constexpr unsigned packed_row_ends(unsigned ends) { return ends & ((1u << packed_tuning.lane_entries) - 1); }
constexpr std::int32_t packed_rows_before(unsigned ends)
{
    return static_cast<std::int32_t>(ends >> packed_tuning.lane_entries);
}

/// Number in its tile of entry k of a lane. In a tile in which no row ends the order is free: neighbouring lanes have
/// neighbouring entries, so that they gather from few sectors. Elsewhere each lane has consecutive ones.
constexpr int packed_tile_entry(int lane, int k, bool row_ends)
{
    return row_ends ? lane * packed_tuning.lane_entries + k : k * 32 + lane;
}

struct PackedShape {
    std::int64_t blocks = 0;
    std::int64_t block_entries = 0;  ///< from one cut to the next, before cuts move back to the start of their row
};

/// As many blocks as run at once, if the matrix has a tile for each of their warps. If most blocks would wait for
/// others, since rows are longer than them, it takes two tiles a warp, but two blocks a multiprocessor in any case.
constexpr PackedShape packed_shape(std::int64_t entries, std::int64_t rows, int compute_units,
                                   const PackedTuning& tuning = packed_tuning)
{
    if (entries == 0) {
        return {};
    }
    const auto blocks_of = [&](int warp_tiles) {
        const std::int64_t room = std::int64_t{warp_tiles} * tuning.warps() * tuning.tile_entries();
        return (entries + room - tuning.longest_whole_row - 1) / (room - tuning.longest_whole_row);
    };
    const std::int64_t at_once = std::int64_t{compute_units} * tuning.blocks_per_multiprocessor;
    PackedShape shape;
    shape.blocks = blocks_of(1);
    if (shape.blocks > rows) {
        shape.blocks = std::max(blocks_of(2), std::min(shape.blocks, std::int64_t{2} * compute_units));
    }
    shape.blocks = std::min(shape.blocks, std::max(at_once, blocks_of(tuning.most_warp_tiles)));
    shape.block_entries = (entries + shape.blocks - 1) / shape.blocks;
    return shape;
}

/// Where a block begins; inside a row if `entry` is not that row's first.
struct PackedStart {
    std::int64_t row = 0;
    std::int64_t entry = 0;
    std::int64_t row_begin = 0;  ///< first entry of the row

    constexpr bool cuts_row() const { return entry > row_begin; }
};

/// The cut at `entry`.
/// \param first_entry  of each row, and their number behind the last
/// \param whole_row  rows of at most this many entries are not cut: the cut moves back to their start
constexpr PackedStart packed_start(std::int64_t entry, std::int64_t rows, const std::int64_t* first_entry,
                                   std::int64_t whole_row)
{
    if (entry >= first_entry[rows]) {
        return {rows, first_entry[rows], first_entry[rows]};
    }
    const std::int64_t row = bisect_columns(first_entry, 0, rows, entry);
    const std::int64_t first = first_entry[row];
    return {row, first_entry[row + 1] - first <= whole_row ? first : entry, first};
}

/// Tiles that hold so many entries.
constexpr std::int64_t packed_tiles_of(std::int64_t entries)
{
    constexpr int tile_entries = packed_tuning.tile_entries();
    return (entries + tile_entries - 1) / tile_entries;
}

/// Tiles of the largest block at most, where rows of up to `longest_whole_row` stay whole.
constexpr std::int64_t packed_most_tiles(const PackedShape& shape)
{
    return packed_tiles_of(shape.block_entries + packed_tuning.longest_whole_row);
}

/// How often `longest_whole_row` must double for a row of that many entries to stay whole.
constexpr int packed_doublings(std::int64_t entries)
{
    int n = 0;
    while (std::int64_t{packed_tuning.longest_whole_row} << n < entries) {
        ++n;
    }
    return n;
}

/// A cut and from how many doublings on it moves back to the start of its row; of one that is at a start, 0.
struct PackedCut {
    std::int64_t entry = 0;
    std::int64_t row_begin = 0;
    int doublings = 0;

    constexpr std::int64_t entry_after(int n) const { return n < doublings ? entry : row_begin; }
};

/// Of a start made with `longest_whole_row`.
constexpr PackedCut packed_cut(const PackedStart& start, const std::int64_t* first_entry)
{
    return {start.entry, start.row_begin,
            start.cuts_row() ? packed_doublings(first_entry[start.row + 1] - start.row_begin) : 0};
}

/// How often the longest row that stays whole may double before the block between two cuts has more than so many tiles;
/// no more than `most`.
constexpr int packed_doublings_between(const PackedCut& begin, const PackedCut& end, std::int64_t block_tiles, int most)
{
    int n = 0;
    while (n < most && packed_tiles_of(end.entry_after(n + 1) - begin.entry_after(n + 1)) <= block_tiles) {
        ++n;
    }
    return n;
}

/// First of a warp's tiles, of those of its block.
constexpr int packed_first_tile(int warp, int warps, int block_tiles) { return warp * block_tiles / warps; }

/// What a block shares of rows with others. A row that is cut has a piece in each of its blocks, numbered as they are;
/// the last adds them up. A piece is handed over by the warps that have a part of it, each in a slot of its own, so
/// that none of them waits for the block.
struct PackedCuts {
    std::int32_t first_piece = 0;  ///< of the row that began before and ends here: so many pieces from this one on
    std::int32_t pieces = 0;
    std::int32_t own_piece = -1;  ///< the block's number, if it leaves a piece; -1: its last row ends
    std::int32_t first_warp = 0;  ///< that has a part of it
};

/// \param starts  of each block, and the end
/// \param first_entry  of the block's first tile
constexpr PackedCuts packed_cuts(const PackedStart* starts, std::int64_t block, int block_tiles,
                                 std::int64_t first_entry)
{
    constexpr int tile_entries = packed_tuning.tile_entries();
    constexpr int warps = packed_tuning.warps();
    const PackedStart& own = starts[block];
    const PackedStart& next = starts[block + 1];
    const bool ends_row = next.row > own.row;
    PackedCuts cuts;
    if (ends_row && own.cuts_row()) {
        // The first cut of the row; the block before it left the first piece.
        std::int64_t first = 0;
        std::int64_t end = block;
        while (first < end) {
            const std::int64_t middle = first + (end - first) / 2;
            if (starts[middle].row < own.row || !starts[middle].cuts_row()) {
                first = middle + 1;
            } else {
                end = middle;
            }
        }
        cuts.first_piece = static_cast<std::int32_t>(first - 1);
        cuts.pieces = static_cast<std::int32_t>(block - first + 1);
    }
    if (next.cuts_row()) {
        cuts.own_piece = static_cast<std::int32_t>(block);
        if (ends_row) {
            const auto tile = static_cast<int>((next.row_begin - 1 - first_entry) / tile_entries);
            while (packed_first_tile(cuts.first_warp + 1, warps, block_tiles) <= tile) {
                ++cuts.first_warp;
            }
        }
    }
    return cuts;
}

}  // namespace rmsp::kernels
