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
    std::int32_t cut = -1;  ///< at least 0 if it begins inside the row: which of the cut rows this is
    std::int32_t padding = 0;
};

/// A row that several tiles share: tiles first_tile, ... hold its `pieces` pieces, whose sums are kept from `slot` on.
struct CutRow {
    std::int64_t row = 0;
    std::int64_t slot = 0;
    std::int64_t first_tile = 0;
    std::int32_t pieces = 0;
    std::int32_t padding = 0;
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

/// Numbers the cut rows in `starts` (tiles + 1 entries) and returns them.
inline std::vector<CutRow> number_cut_rows(std::span<TileStart> starts)
{
    std::vector<CutRow> cuts;
    std::int64_t slots = 0;
    for (std::size_t i = 0; i < starts.size(); ++i) {
        if (starts[i].cut < 0) {
            continue;
        }
        if (cuts.empty() || cuts.back().row != starts[i].row) {
            cuts.push_back({starts[i].row, slots, static_cast<std::int64_t>(i) - 1, 1, 0});
            ++slots;
        }
        ++cuts.back().pieces;
        ++slots;
        starts[i].cut = static_cast<std::int32_t>(cuts.size()) - 1;
    }
    return cuts;
}

}  // namespace rmsp::kernels
