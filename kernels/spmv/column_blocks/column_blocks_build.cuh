#pragma once

#include <cstdint>

#include <kernels/context.hpp>
#include <kernels/cuda_check.cuh>
#include <kernels/spmv/column_blocks/layout.hpp>

/// The arrays of kernel "column-blocks" and the kernels that make them from CSR.
namespace rmsp::kernels::column_blocks {

inline constexpr int build_threads = 256;

inline unsigned build_blocks(std::int64_t n) { return static_cast<unsigned>((n + build_threads - 1) / build_threads); }

__device__ __forceinline__ std::int64_t build_index() { return std::int64_t{blockIdx.x} * build_threads + threadIdx.x; }

/// ~(number of entries) of each column, so that an ascending sort puts the fullest first. `keys` starts at ~0.
static __global__ void count_columns_kernel(const std::int32_t* columns, std::int64_t nnz, std::uint32_t* keys)
{
    const std::int64_t i = build_index();
    if (i < nnz) {
        atomicSub(keys + columns[i], 1u);
    }
}

static __global__ void iota_kernel(std::uint32_t* out, std::int64_t n)
{
    const std::int64_t i = build_index();
    if (i < n) {
        out[i] = static_cast<std::uint32_t>(i);
    }
}

/// The place of each column in the order, of which the first one is `place`, and how many have entries.
static __global__ void rank_columns_kernel(const std::uint32_t* keys, const std::uint32_t* order, std::int64_t cols,
                                           std::uint32_t place, std::uint32_t* rank, std::uint32_t* used)
{
    const std::int64_t i = build_index();
    if (i < cols) {
        rank[order[i]] = place + static_cast<std::uint32_t>(i);
        if (keys[i] != ~0u && (i + 1 == cols || keys[i + 1] == ~0u)) {
            *used = static_cast<std::uint32_t>(i) + 1;
        }
    }
}

/// Row of each entry; one warp a row.
template <class Offset>
__global__ void entry_rows_kernel(const Offset* row_ptr, std::int64_t rows, std::uint32_t* entry_row)
{
    const std::int64_t row = build_index() / 32;
    if (row < rows) {
        const Offset end = row_ptr[row + 1];
        for (Offset i = row_ptr[row] + static_cast<Offset>(threadIdx.x % 32); i < end; i += 32) {
            entry_row[i] = static_cast<std::uint32_t>(row);
        }
    }
}

/// Block of each entry, and its number.
static __global__ void entry_blocks_kernel(const std::int32_t* columns, std::int64_t nnz, const std::uint32_t* rank,
                                           std::uint32_t block_columns, std::uint32_t* block, std::uint32_t* index)
{
    const std::int64_t i = build_index();
    if (i < nnz) {
        block[i] = rank[columns[i]] / block_columns;
        index[i] = static_cast<std::uint32_t>(i);
    }
}

/// Where each block begins among its sorted entries; `first` has blocks + 1 entries.
static __global__ void block_starts_kernel(const std::uint32_t* block, std::int64_t nnz, std::int64_t* first,
                                           std::uint32_t blocks)
{
    const std::int64_t i = build_index();
    if (i <= nnz) {
        const std::int64_t before = i == 0 ? -1 : std::int64_t{block[i - 1]};
        const std::int64_t here = i == nnz ? std::int64_t{blocks} : std::int64_t{block[i]};
        for (std::int64_t b = before + 1; b <= here; ++b) {
            first[b] = i;
        }
    }
}

/// The sorted entries, as the builders see them.
struct Sorted {
    const std::uint32_t* entry;  ///< index in the CSR arrays
    const std::uint32_t* entry_row;
    const std::int32_t* columns;
    const std::uint32_t* rank;
    const std::int64_t* first_entry;  ///< of each block
    const std::int64_t* first_tile;
    std::uint32_t block_columns;
};

/// One warp a tile: codes, and the number of stretches.
static __global__ void codes_kernel(const Sorted s, std::int64_t tiles, std::uint32_t blocks, std::uint16_t* codes,
                                    std::uint32_t* entry_of_slot, std::uint32_t* stretches)
{
    const std::int64_t tile = build_index() / 32;
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (tile >= tiles) {
        return;
    }
    std::uint32_t block = 0;
    std::uint32_t end_block = blocks;
    while (end_block - block > 1) {
        const std::uint32_t middle = block + (end_block - block) / 2;
        if (s.first_tile[middle] <= tile) {
            block = middle;
        } else {
            end_block = middle;
        }
    }
    const std::int64_t begin = s.first_entry[block] + (tile - s.first_tile[block]) * block_tile_entries;
    const std::int64_t left = s.first_entry[block + 1] - begin;
    int ends = 0;
    for (int j = 0; j < tile_lane_entries; ++j) {
        const int i = j * 32 + lane;
        const std::int64_t slot = tile * block_tile_entries + i;
        std::uint32_t code = s.block_columns;  // of padding: a zero behind the slice
        std::uint32_t entry = ~0u;
        if (i < left) {
            entry = s.entry[begin + i];
            code = s.rank[s.columns[entry]] - block * s.block_columns;
            const bool last = i + 1 == block_tile_entries || i + 1 == left ||
                              s.entry_row[s.entry[begin + i + 1]] != s.entry_row[entry];
            code |= last ? stretch_end : 0u;
            ends += last ? 1 : 0;
        }
        codes[slot] = static_cast<std::uint16_t>(code);
        entry_of_slot[slot] = entry;
    }
    ends = static_cast<int>(__reduce_add_sync(0xffffffffu, static_cast<unsigned>(ends)));
    if (lane == 0) {
        stretches[tile] = static_cast<std::uint32_t>(ends);
    }
}

/// One warp a tile: the row of each stretch, and how many each row has.
static __global__ void stretch_rows_kernel(std::int64_t tiles, const std::uint16_t* codes,
                                           const std::uint32_t* entry_of_slot, const std::uint32_t* entry_row,
                                           const std::uint32_t* first_stretch, std::uint32_t* row_of,
                                           std::uint32_t* row_counts)
{
    const std::int64_t tile = build_index() / 32;
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (tile >= tiles) {
        return;
    }
    std::uint32_t at = first_stretch[tile];
    for (int i = lane; i < block_tile_entries; i += 32) {
        const std::int64_t slot = tile * block_tile_entries + i;
        const bool end = (codes[slot] & stretch_end) != 0;
        const unsigned ends = __ballot_sync(0xffffffffu, end);
        if (end) {
            const std::uint32_t row = entry_row[entry_of_slot[slot]];
            row_of[at + static_cast<std::uint32_t>(__popc(ends & ((1u << lane) - 1)))] = row;
            atomicAdd(row_counts + row, 1u);
        }
        at += static_cast<std::uint32_t>(__popc(ends));
    }
}

/// First tile of each thread block, and the end.
static __global__ void shares_kernel(int parts, const std::int64_t* first_tile, std::int64_t blocks,
                                     const std::uint32_t* first_stretch, ColumnBlockTuning tuning, std::int64_t* shares)
{
    const auto part = static_cast<int>(build_index());
    if (part <= parts) {
        shares[part] = share_begin(part, parts, first_tile, blocks, first_stretch, tuning);
    }
}

/// Values into the tiles, stored as V; padding is 0.
template <class V, class T>
__global__ void tile_values_kernel(const T* entries, const std::uint32_t* entry_of_slot, std::int64_t slots, V* values)
{
    const std::int64_t slot = build_index();
    if (slot < slots) {
        const std::uint32_t entry = entry_of_slot[slot];
        const std::int64_t tile = slot / block_tile_entries;
        values[tile * block_tile_entries +
               tile_value_place(static_cast<int>(slot % block_tile_entries), 16 / static_cast<int>(sizeof(V)))] =
            entry == ~0u ? V{0} : static_cast<V>(entries[entry]);
    }
}

}  // namespace rmsp::kernels::column_blocks
