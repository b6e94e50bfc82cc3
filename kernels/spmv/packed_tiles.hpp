#pragma once

#include <algorithm>
#include <cstdint>

#include <kernels/spmv/search.hpp>
#include <kernels/spmv/tiles.hpp>

/// How kernel "packed-tiles" lays out a matrix. Plain C++, so that the host tests it.
///
/// Entries are the nonzeros by rows, and one without a value for each empty row, so that rows follow each other without gaps. A
/// tile is what one warp multiplies in one step: 32 lanes of `lane_entries` consecutive entries each. A block has a stretch of entries and `block_tiles` tiles for
/// them. Everything in a tile is where its number says, so that all of its loads start at once: there are no row pointers, but a bit for
/// each entry that ends a row.
namespace rmsp::kernels {

struct PackedTuning {
    int threads = 256;
    int lane_entries = 8;
    int blocks_per_multiprocessor = 4;
    int longest_whole_row = 128;  ///< entries; longer rows may be shared by blocks
    int most_warp_tiles = 16;     ///< of larger matrices, whose blocks come in several waves

    constexpr int warps() const { return threads / 32; }
    constexpr int tile_entries() const { return 32 * lane_entries; }
    bool operator==(const PackedTuning&) const = default;
};
inline constexpr PackedTuning packed_tuning{};

/// A column that stands for none, in 16 and in 32 bits.
inline constexpr std::uint32_t no_column16 = 0xffff;
inline constexpr std::int32_t no_column32 = -1;

/// What a tile's lanes share.
struct PackedHeader {
    std::int32_t first_row = 0;     ///< that ends in this tile or later
    std::int32_t first_column = 0;  ///< columns are 16 bits counted from here; -1: they are 32 bits
};
inline constexpr std::int32_t wide_columns = -1;

/// Whether columns from `least` to `most` fit 16 bits.
constexpr bool fits_16_bits(std::int64_t least, std::int64_t most)
{
    return most - least < static_cast<std::int64_t>(no_column16);
}

/// Bit k: entry k of the lane ends a row; above them, how many rows end in the lanes before.
constexpr std::uint16_t packed_ends(unsigned ends, int rows_before)
{
    return static_cast<std::uint16_t>(ends | static_cast<unsigned>(rows_before) << packed_tuning.lane_entries);
}

struct PackedShape {
    std::int64_t blocks = 0;
    std::int64_t block_entries = 0;  ///< from one cut to the next, before cuts move back to the start of their row
    int block_tiles = 0;             ///< room for them, and for a row

    constexpr std::int64_t tiles() const { return blocks * block_tiles; }
};

/// As many blocks as run at once, if the matrix has a tile for each of their warps.
constexpr PackedShape packed_shape(std::int64_t entries, int compute_units, const PackedTuning& tuning = packed_tuning)
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
    shape.blocks = std::min(blocks_of(1), std::max(at_once, blocks_of(tuning.most_warp_tiles)));
    shape.block_entries = (entries + shape.blocks - 1) / shape.blocks;
    shape.block_tiles = static_cast<int>((shape.block_entries + tuning.longest_whole_row + tuning.tile_entries() - 1) /
                                         tuning.tile_entries());
    return shape;
}

/// The cut at `entry`; cut is 0 if it is inside a row. `nonzero` of what is returned counts entries.
/// \param first_entry  of each row, and their number behind the last
constexpr TileStart packed_start(std::int64_t entry, std::int64_t rows, const std::int64_t* first_entry,
                                 std::int64_t whole_row = packed_tuning.longest_whole_row)
{
    if (entry >= first_entry[rows]) {
        return {rows, first_entry[rows], -1, 0};
    }
    const std::int64_t row = find_column(first_entry, 0, rows - 1, entry);
    const std::int64_t first = first_entry[row];
    if (entry == first || first_entry[row + 1] - first <= whole_row) {
        return {row, first, -1, 0};
    }
    return {row, entry, 0, 0};
}

}  // namespace rmsp::kernels
