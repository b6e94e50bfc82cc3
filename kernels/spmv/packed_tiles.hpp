#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <kernels/spmv/search.hpp>

/// How kernel "packed-tiles" lays out a matrix. Plain C++, so that the host tests it.
///
/// Entries are the nonzeros by rows, and one without a value for each empty row, so that rows follow each other without gaps. A
/// tile is what one warp multiplies in one step: 32 lanes of `lane_entries` consecutive entries each. A block has a stretch of entries, and
/// as many tiles as the largest of them. Everything in a tile is where its number says, so that all of its loads start at once: there are no row pointers, but a bit for
/// each entry that ends a row.
namespace rmsp::kernels {

struct PackedTuning {
    int threads = 256;
    int lane_entries = 8;
    int blocks_per_multiprocessor = 4;
    int longest_whole_row =
        128;                   ///< entries; longer rows may be shared by blocks, unless there is room for them anyway
    int most_warp_tiles = 16;  ///< of larger matrices, whose blocks come in several waves

    constexpr int warps() const { return threads / 32; }
    constexpr int tile_entries() const { return 32 * lane_entries; }
    bool operator==(const PackedTuning&) const = default;
};
inline constexpr PackedTuning packed_tuning{};

/// Columns of a tile are counted from its first in 16 bits where those suffice. Those of other tiles, the wide ones, are counted from 0, and
/// have so many bits more, kept apart.
inline constexpr int packed_low_bits = 16;
constexpr int packed_high_bits(std::int64_t cols) { return cols < std::int64_t{1} << 20 ? 4 : 16; }

/// The code of a column that stands for none.
constexpr std::uint32_t packed_no_column(int bits) { return 0xffffffffu >> (32 - bits); }

/// Whether columns from `least` to `most` fit 16 bits.
constexpr bool fits_16_bits(std::int64_t least, std::int64_t most)
{
    return most - least < static_cast<std::int64_t>(packed_no_column(packed_low_bits));
}

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

struct PackedShape {
    std::int64_t blocks = 0;
    std::int64_t block_entries = 0;  ///< from one cut to the next, before cuts move back to the start of their row
};

/// As many blocks as run at once, if the matrix has a tile for each of their warps. If most blocks would wait for others, since rows are longer
/// than them, it takes two tiles a warp, but two blocks a multiprocessor in any case.
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
    const std::int64_t row = find_column(first_entry, 0, rows - 1, entry);
    const std::int64_t first = first_entry[row];
    return {row, first_entry[row + 1] - first <= whole_row ? first : entry, first};
}

/// Tiles of the largest block.
/// \param starts  of each block, and the end
inline int packed_block_tiles(std::span<const PackedStart> starts, const PackedTuning& tuning = packed_tuning)
{
    std::int64_t most = 0;
    for (std::size_t block = 0; block + 1 < starts.size(); ++block) {
        most = std::max(most, starts[block + 1].entry - starts[block].entry);
    }
    return static_cast<int>((most + tuning.tile_entries() - 1) / tuning.tile_entries());
}

/// First of a warp's tiles, of those of its block.
constexpr int packed_first_tile(int warp, int warps, int block_tiles) { return warp * block_tiles / warps; }

/// What a block shares of rows with others. A row that is cut has a piece in each of its blocks; the last adds them up. A piece is handed
/// over by the warps that have a part of it, each in a slot of its own, so that none of them waits for the block.
struct PackedCuts {
    std::int32_t first_piece = 0;  ///< of the row that began before and ends here: so many pieces from this one on
    std::int32_t pieces = 0;
    std::int32_t own_piece = -1;  ///< number of the piece that this block leaves; -1: its last row ends
    std::int32_t first_warp = 0;  ///< that has a part of it
};

/// \param starts  as packed_block_tiles()
/// \param first_entry  of the first tile of a block
/// \param pieces  how many there are
template <class FirstEntry>
std::vector<PackedCuts> packed_cuts(std::span<const PackedStart> starts, int block_tiles, FirstEntry&& first_entry,
                                    std::int32_t& pieces, const PackedTuning& tuning = packed_tuning)
{
    std::vector<PackedCuts> all(starts.size() - 1);
    pieces = 0;
    std::int32_t before = 0;  // pieces of the row in which the block begins
    for (std::size_t block = 0; block < all.size(); ++block) {
        const PackedStart& next = starts[block + 1];
        const bool ends_row = next.row > starts[block].row;
        PackedCuts& cuts = all[block];
        if (ends_row) {
            cuts.first_piece = pieces - before;
            cuts.pieces = before;
            before = 0;
        }
        if (next.cuts_row()) {
            cuts.own_piece = pieces++;
            ++before;
            if (ends_row) {
                const auto tile = static_cast<int>((next.row_begin - 1 - first_entry(block)) / tuning.tile_entries());
                while (packed_first_tile(cuts.first_warp + 1, tuning.warps(), block_tiles) <= tile) {
                    ++cuts.first_warp;
                }
            }
        }
    }
    return all;
}

/// Of blocks that begin with a tile of their own.
inline std::vector<PackedCuts> packed_cuts(std::span<const PackedStart> starts, int block_tiles, std::int32_t& pieces,
                                           const PackedTuning& tuning = packed_tuning)
{
    return packed_cuts(
        starts, block_tiles, [&](std::size_t block) { return starts[block].entry; }, pieces, tuning);
}

}  // namespace rmsp::kernels
