#pragma once

#include <cstdint>

/// The layout of kernel "sell-blocks" as data and pure functions. Plain C++, so that the host tests it.
///
/// Matrices of several unknowns a node consist of small dense blocks. Sliced rows as in "sell", where the entries of a block share one
/// 32-bit code: which columns, and a bit for each entry that there is. Bytes an entry of full blocks of 3 x 3, double: values 8, codes
/// 4/9; CSR has 12. A lane has one column of each block of a node, so that it gathers one x for all of the block's rows.
namespace rmsp::kernels {

struct SellBlocksTuning {
    int threads = 256;
    int blocks_per_multiprocessor = 4;
    int groups_in_flight = 2;           ///< groups of blocks that a lane loads before it uses the first
    int sorted_padding = 3;             ///< per cent of padding above which the nodes of a window are sorted
    int least_fill = 50;                ///< per cent of a slice that must be entries; emptier slices are left in CSR
    double most_index_bytes = 1.5;      ///< an entry, padding inside blocks counted; with more, "sell" does better
    int warps_per_multiprocessor = 40;  ///< where there are fewer slices, several warps share each
    bool operator==(const SellBlocksTuning&) const = default;
};
inline constexpr SellBlocksTuning sell_blocks_tuning{};

/// Rows and columns of the blocks of a matrix: both begin at multiples of these.
struct BlockShape {
    int rows = 0;
    int cols = 0;
    constexpr int entries() const { return rows * cols; }
    bool operator==(const BlockShape&) const = default;
};
inline constexpr BlockShape block_shapes[] = {{3, 3}, {2, 3}, {2, 2}};

/// Nodes (rows of blocks) of a slice: as many as one warp has lanes for.
constexpr int slice_nodes(const BlockShape& shape) { return 32 / shape.cols; }
constexpr int slice_lanes(const BlockShape& shape) { return slice_nodes(shape) * shape.cols; }
/// Nodes are sorted inside windows of this many slices.
inline constexpr int window_slices = 32;

/// Blocks whose values a lane loads with 16-byte loads, and whose codes lie side by side.
template <class T>
inline constexpr int block_group = 16 / static_cast<int>(sizeof(T));

/// Whether codes have room for the columns.
constexpr bool fits_block_codes(const BlockShape& shape, std::int64_t cols)
{
    return (cols + shape.cols - 1) / shape.cols <= std::int64_t{1} << (32 - shape.entries());
}

constexpr std::uint32_t block_code(const BlockShape& shape, std::uint32_t block_column, std::uint32_t entries)
{
    return block_column << shape.entries() | entries;
}

/// Where the value in row `row` of block k is, in a slice of `width` blocks: whole groups first, then single blocks.
template <class T>
constexpr std::int64_t block_value_place(const BlockShape& shape, int width, int k, int row, int lane)
{
    constexpr int group = block_group<T>;
    const int lanes = slice_lanes(shape);
    const int first = k / group * group;
    if (first + group <= width) {
        const int i = (k - first) * shape.rows + row;
        return std::int64_t{first} * lanes * shape.rows + (i / group * lanes + lane) * group + i % group;
    }
    return (std::int64_t{k} * shape.rows + row) * lanes + lane;
}

template <class T>
constexpr std::int64_t block_code_place(const BlockShape& shape, int width, int k, int node)
{
    constexpr int group = block_group<T>;
    const int nodes = slice_nodes(shape);
    const int first = k / group * group;
    return first + group <= width ? std::int64_t{first} * nodes + node * group + (k - first)
                                  : std::int64_t{k} * nodes + node;
}

/// Blocks a node that a slice has room for: the next slice begins at a multiple of 16 bytes.
template <class T>
constexpr std::uint32_t slice_room(std::uint32_t width)
{
    constexpr std::uint32_t group = block_group<T>;
    return (width + group - 1) / group * group;
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

/// Warps that share a slice.
constexpr int slice_parts(std::int64_t slices, int multiprocessors, double mean_width, int group,
                          const SellBlocksTuning& tuning = sell_blocks_tuning)
{
    int parts = 1;
    while (parts < 8 && slices * parts < std::int64_t{tuning.warps_per_multiprocessor} * multiprocessors &&
           mean_width >= 2 * parts * group) {
        parts *= 2;
    }
    return parts;
}

}  // namespace rmsp::kernels
