#pragma once

#include <algorithm>
#include <cstdint>

#include <kernels/spmv/common/blocks.hpp>

/// The layout of kernel "sell-blocks" as data and pure functions. Plain C++, so that the host tests it.
///
/// Matrices of several unknowns a node consist of small dense blocks. Sliced rows as in "sell", where the entries of a
/// block share one 32-bit code: which columns, and a bit for each entry that there is. Bytes an entry of full blocks of
/// 3 x 3, double: values 8, codes 4/9; CSR has 12. A lane has a line of each block of a node: a column, so that it
/// gathers one x for all of the block's rows, or a row where blocks are wider than high. Doubles that are all exactly
/// floats are stored as such, in the same places.
namespace rmsp::kernels {

struct SellBlocksTuning {
    int threads = 256;
    int blocks_per_multiprocessor = 4;
    int groups_in_flight = 3;       ///< groups of blocks that a lane loads before it uses the first; twice of floats
    int sorted_padding = 3;         ///< per cent of padding above which the nodes of a window are sorted
    int least_fill = 50;            ///< per cent of a slice that must be blocks; emptier slices are left in CSR
    double most_index_bytes = 1.5;  ///< an entry, padding inside blocks counted; with more, "sell" does better
    int fewest_warps = 32;          ///< a multiprocessor; where there are fewer slices, several warps share each
    int few_warps = 160;  ///< up to so many, the last ones to finish matter: slices are shared if they are wide
    /// Up to so many, slices are shared if a lane could not load all of it at once; in lanes of `full_line` values a
    /// block, or more.
    int one_step_warps = 64;
    int full_line = 3;
    int least_threads = 128;  ///< smaller thread blocks leave less idle at the end
    int many_slices =
        16;  ///< a multiprocessor; where there are fewer, latency decides, and more bytes are better than more code
    int last_warps =
        16;  ///< a multiprocessor; whose slices, the last ones of many, are shared by all warps of a thread block
    int short_rows = 16;  ///< entries, on average; fewer lanes go through a node of such rows while the format is made
    int counting_blocks = 8;  ///< thread blocks a multiprocessor that count blocks, for each way to cut rows into nodes
    std::int64_t sampled_rows = 1 << 15;  ///< of so many rows or more, the way is chosen by one node in `sample`
    int sample = 8;
    bool operator==(const SellBlocksTuning&) const = default;
};
inline constexpr SellBlocksTuning sell_blocks_tuning{};

/// Nodes (rows of blocks) of a slice: as many as one warp has lanes for.
constexpr int slice_nodes(const BlockShape& shape) { return 32 / shape.lanes(); }
constexpr int slice_lanes(const BlockShape& shape) { return slice_nodes(shape) * shape.lanes(); }
/// Nodes are sorted inside windows of this many slices.
inline constexpr int window_slices = 32;

/// Blocks whose values a lane loads with 16-byte loads, and whose codes lie side by side. Few slices are whole groups
/// wide; of many, the last blocks of each, where they are fewer, are stored one by one.
template <class T>
inline constexpr int block_group = 16 / static_cast<int>(sizeof(T));

template <class T>
constexpr int whole_groups(int width)
{
    return (width + block_group<T> - 1) / block_group<T> * block_group<T>;
}

/// Blocks a node that a slice has room for, so that the next one begins where 16-byte loads can.
template <class T>
constexpr int slice_room(int width)
{
    constexpr int aligned = block_group<T> / 2;
    return (width + aligned - 1) / aligned * aligned;
}

/// \param mean_blocks  of a node
constexpr bool many_slices(std::int64_t slices, int multiprocessors, double mean_blocks, int group,
                           const SellBlocksTuning& tuning = sell_blocks_tuning)
{
    return slices >= std::int64_t{tuning.many_slices} * multiprocessors &&
           mean_blocks >= static_cast<double>(group) * tuning.groups_in_flight;
}

/// Whether codes have room for the columns.
constexpr bool fits_block_codes(const BlockShape& shape, std::int64_t cols)
{
    return (cols + shape.cols - 1) / shape.cols <= std::int64_t{1} << (32 - shape.entries());
}

constexpr std::uint32_t block_code(const BlockShape& shape, std::uint32_t block_column, std::uint32_t entries)
{
    return block_column << shape.entries() | entries;
}

/// Where value `place` of a lane's line of block k is in its slice.
template <class T>
constexpr std::int64_t block_value_place(const BlockShape& shape, int width, int k, int place, int lane)
{
    constexpr int group = block_group<T>;
    const int lanes = slice_lanes(shape);
    const int first = k / group * group;
    if (first + group > width) {
        return (std::int64_t{k} * shape.lane_values() + place) * lanes + lane;
    }
    const int i = k % group * shape.lane_values() + place;
    return std::int64_t{first} * lanes * shape.lane_values() + (i / group * lanes + lane) * group + i % group;
}
/// Where an entry of a block of node `node` is in its slice.
template <class T>
constexpr std::int64_t block_entry_place(const BlockShape& shape, int width, int k, int node, int row, int col)
{
    return shape.by_column() ? block_value_place<T>(shape, width, k, row, node * shape.lanes() + col)
                             : block_value_place<T>(shape, width, k, col, node * shape.lanes() + row);
}

template <class T>
constexpr std::int64_t block_code_place(const BlockShape& shape, int width, int k, int node)
{
    constexpr int group = block_group<T>;
    const int first = k / group * group;
    return first + group > width ? std::int64_t{k} * slice_nodes(shape) + node
                                 : std::int64_t{first} * slice_nodes(shape) + node * group + k % group;
}

inline constexpr std::uint32_t full_slice = 0x80000000;

/// A slice as the kernel reads it.
struct alignas(8) BlockSlice {
    std::uint32_t first = 0;  ///< blocks a node that the slices before have room for
    std::uint32_t width = 0;  ///< blocks a node, 0: left in CSR; and full_slice, if all blocks are full
    constexpr int blocks() const { return static_cast<int>(width & ~full_slice); }
    constexpr bool full() const { return (width & full_slice) != 0; }
    bool operator==(const BlockSlice&) const = default;
};

/// Blocks of a matrix of one shape, as counted: nodes whose columns are not ascending are left out.
struct BlockCount {
    std::int64_t blocks = 0;
    std::int64_t entries = 0;  ///< in them
};

/// Bytes that the entries take in blocks of that shape; what is left out stays in CSR.
constexpr double block_bytes(const BlockShape& shape, const BlockCount& count, std::int64_t nnz, int value_bytes)
{
    return static_cast<double>(count.blocks) * (shape.entries() * value_bytes + 4) +
           static_cast<double>(nnz - count.entries) * (value_bytes + 4);
}

/// Lanes that go through a node while the format is made. Few make the longest rows last, many find little to do in
/// each.
constexpr int node_lanes(double mean_row, const SellBlocksTuning& tuning = sell_blocks_tuning)
{
    return mean_row <= tuning.short_rows ? 4 : 8;
}

/// Warps that share a slice.
constexpr int slice_parts(std::int64_t slices, int multiprocessors, double mean_width, int group, int lane_values,
                          const SellBlocksTuning& tuning = sell_blocks_tuning)
{
    constexpr int most = 8;
    const double in_flight = static_cast<double>(group) * tuning.groups_in_flight;
    int parts = 1;
    const auto short_of = [&](std::int64_t warps) { return slices * parts < warps * multiprocessors; };
    while (parts < most &&
           ((short_of(tuning.fewest_warps) && mean_width >= parts * group) ||
            (short_of(tuning.few_warps) && mean_width >= 2 * parts * in_flight) ||
            (short_of(tuning.one_step_warps) && mean_width > parts * in_flight && lane_values >= tuning.full_line))) {
        parts *= 2;
    }
    return parts;
}

/// The last of many slices, which a whole thread block shares: whole blocks' worth of them. None if one step of a warp
/// is enough.
constexpr std::int64_t last_slices(std::int64_t slices, int multiprocessors, double mean_width, int group, int parts,
                                   int slices_per_block, const SellBlocksTuning& tuning = sell_blocks_tuning)
{
    if (slices_per_block == 1 || mean_width <= static_cast<double>(parts) * group * tuning.groups_in_flight) {
        return 0;
    }
    const std::int64_t last = std::min(slices, std::int64_t{tuning.last_warps} * multiprocessors / parts);
    return slices - (slices - last) / slices_per_block * slices_per_block;
}

/// Threads of a thread block, which has whole slices.
constexpr int slice_threads(int parts, const SellBlocksTuning& tuning = sell_blocks_tuning)
{
    return std::max(tuning.least_threads, 32 * parts);
}

}  // namespace rmsp::kernels
