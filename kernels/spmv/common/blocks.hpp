#pragma once

/// Dense blocks of entries: what kernels may store, and what the automatic choice looks for.
namespace rmsp::kernels {

/// Rows and columns of the blocks of a matrix: both begin at multiples of these.
struct BlockShape {
    int rows = 0;
    int cols = 0;
    constexpr int entries() const { return rows * cols; }
    constexpr bool by_column() const { return rows >= cols; }          ///< a lane has a column of a block, not a row
    constexpr int lanes() const { return rows < cols ? rows : cols; }  ///< of a node
    constexpr int lane_values() const { return rows < cols ? cols : rows; }
    bool operator==(const BlockShape&) const = default;
};
inline constexpr BlockShape block_shapes[] = {{3, 3}, {2, 3}, {2, 2}};

}  // namespace rmsp::kernels
