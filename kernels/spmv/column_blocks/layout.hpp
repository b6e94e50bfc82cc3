#pragma once

#include <cstddef>
#include <cstdint>

#include <kernels/spmv/common/search.hpp>

/// The layout of kernel "column-blocks" as data and pure functions. Plain C++, so that the host tests it.
///
/// Columns are ordered by how many entries they have, and cut into blocks whose slice of x fits the shared memory. The
/// entries of a block are stored by row, in tiles of 256, with 16-bit columns; each stretch of one row gives one
/// partial sum, and a second kernel adds the partial sums of each row. So x is gathered out of shared memory only, and
/// what goes through the L2 is one number a stretch: with blocks of 28,672 columns 10.7 million for the 65.2 million
/// entries of R-MAT 22 with edge factor 16, whose hottest block alone has half of the entries.
namespace rmsp::kernels {

struct ColumnBlockTuning {
    int columns = 28 * 1024;  ///< a block, at most 2^15 - 1
    int threads = 1024;
    int blocks_per_multiprocessor = 1;  ///< of threads: as many as their slices of x leave room for
    int slice_weight = 180;             ///< tiles that take as long as loading a slice of x, all warps waiting
    int stretches_a_tile = 128;         ///< whose sums take as long to write as one tile to read
    int fewest_entries_a_stretch = 3;   ///< on average; with fewer, gathers of x cost less than the sums of stretches
    int fewest_if_split = 2;            ///< entries a stretch, where the first step hides an exchange of x
    bool operator==(const ColumnBlockTuning&) const = default;
};
template <class T>
inline constexpr ColumnBlockTuning column_block_tuning = sizeof(T) == sizeof(double)
                                                             ? ColumnBlockTuning{}
                                                             : ColumnBlockTuning{28 * 1024, 512, 2};

/// Entries that a lane multiplies: one 16-byte load of codes.
inline constexpr int tile_lane_entries = 8;
/// Entries of a tile, which one warp multiplies.
inline constexpr int block_tile_entries = 32 * tile_lane_entries;
/// Set in the code of the last entry of a stretch. A stretch is inside one row, one block and one tile.
inline constexpr std::uint16_t stretch_end = 0x8000;

constexpr std::int64_t block_tiles(std::int64_t entries)
{
    return (entries + block_tile_entries - 1) / block_tile_entries;
}

/// Where entry i of a tile is stored, for vectors of `width` values: what a lane loads lies `width` values a lane side
/// by side.
constexpr int tile_value_place(int i, int width)
{
    const int lane = i / tile_lane_entries;
    const int j = i % tile_lane_entries;
    return (j / width * 32 + lane) * width + j % width;
}

/// The first tile of thread block `part` of `parts`, or the end: they take equal weight. A tile weighs 1, each of its
/// stretches 1 / stretches_a_tile, and the slice of a block, which comes before its tiles, slice_weight. \param
/// first_tile     of each of some blocks, and their end \param first_stretch  of each tile of the matrix, and the end
constexpr std::int64_t share_begin(int part, int parts, const std::int64_t* first_tile, std::int64_t blocks,
                                   const std::uint32_t* first_stretch, const ColumnBlockTuning& tuning)
{
    const std::int64_t first = first_tile[0];
    const std::int64_t tiles = first_tile[blocks];
    const auto work = [&](std::int64_t tile) {
        return tile - first + (first_stretch[tile] - first_stretch[first]) / tuning.stretches_a_tile;
    };
    const std::int64_t total = work(tiles) + blocks * tuning.slice_weight;
    const std::int64_t at = total / parts * part + total % parts * part / parts;
    std::int64_t tile = first;
    std::int64_t end = tiles;
    while (tile < end) {
        const std::int64_t middle = tile + (end - tile) / 2;
        const std::int64_t slices = find_column(first_tile, 0, blocks - 1, middle) + 1;
        if (part == parts || work(middle) + slices * tuning.slice_weight < at) {
            tile = middle + 1;
        } else {
            end = middle;
        }
    }
    return tile;
}

}  // namespace rmsp::kernels
