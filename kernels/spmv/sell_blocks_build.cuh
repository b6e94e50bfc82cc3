#pragma once

#include <cstdint>
#include <limits>

#include <cuda_runtime.h>
#include <kernels/spmv/sell_blocks.hpp>

/// The arrays of kernel "sell-blocks" and the kernels that make them from CSR.
namespace rmsp::kernels::sell_blocks {

inline constexpr int threads = sell_blocks_tuning.threads;
inline constexpr std::uint32_t not_ascending = 0xffffffff;

template <class T, class Offset>
struct Matrix {
    std::int64_t rows;
    const Offset* row_ptr;
    const std::int32_t* col_idx;
    const T* entries;  ///< of the CSR arrays
    std::int64_t nodes;
    std::int64_t shift;  ///< rows of the first node that lie before row 0
    std::int64_t slices;
    std::uint32_t* node_of;  ///< slice_nodes for each slice; `nodes` behind the last
    BlockSlice* info;
    std::uint32_t* codes;
};

struct NodeCount {
    std::uint32_t blocks = 0;  ///< or not_ascending
    std::uint32_t holes = 0;   ///< whether there are blocks that are not full
};

/// Goes through the blocks of a node from left to right: f(k, block column, place[R][C]) with the index of each entry in the CSR
/// arrays, -1 where there is none. Returns the number of blocks, or not_ascending as soon as columns are not.
template <int R, int C, class T, class Offset, class F>
__device__ std::uint32_t for_each_block(const Matrix<T, Offset>& a, std::int64_t node, F&& f)
{
    Offset at[R];
    Offset end[R];
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const std::int64_t row = node * R + r - a.shift;
        const bool is = row >= 0 && row < a.rows;
        at[r] = is ? a.row_ptr[row] : 0;
        end[r] = is ? a.row_ptr[row + 1] : 0;
    }
    std::int32_t last = -1;
    for (std::uint32_t k = 0;; ++k) {
        std::int32_t block = std::numeric_limits<std::int32_t>::max();
#pragma unroll
        for (int r = 0; r < R; ++r) {
            if (at[r] < end[r]) {
                block = min(block, a.col_idx[at[r]] / C);
            }
        }
        if (block == std::numeric_limits<std::int32_t>::max()) {
            return k;
        }
        if (block <= last) {
            return not_ascending;
        }
        last = block;
        Offset place[R][C];
#pragma unroll
        for (int r = 0; r < R; ++r) {
#pragma unroll
            for (int c = 0; c < C; ++c) {
                place[r][c] = -1;
                if (at[r] < end[r] && a.col_idx[at[r]] == block * C + c) {
                    place[r][c] = at[r];
                    ++at[r];
                }
            }
            if (at[r] < end[r] && a.col_idx[at[r]] / C <= block) {
                return not_ascending;
            }
        }
        f(k, block, place);
    }
}

template <int R, int C, class T, class Offset>
__global__ void __launch_bounds__(threads)
    count_blocks_kernel(const Matrix<T, Offset> a, NodeCount* counts, unsigned long long* totals)
{
    const std::int64_t node = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    unsigned long long blocks = 0;
    unsigned long long entries = 0;
    if (node < a.nodes) {
        const std::uint32_t count =
            for_each_block<R, C>(a, node, [](std::uint32_t, std::int32_t, const Offset(&)[R][C]) {});
        NodeCount kept{count, 0};
        if (count != not_ascending) {
            blocks = count;
            entries = static_cast<unsigned long long>(a.row_ptr[min(node * R + R - a.shift, a.rows)] -
                                                      a.row_ptr[max(node * R - a.shift, std::int64_t{0})]);
            kept.holes = entries != blocks * (R * C) ? 1 : 0;
        }
        counts[node] = kept;
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        blocks += __shfl_down_sync(0xffffffffu, blocks, offset);
        entries += __shfl_down_sync(0xffffffffu, entries, offset);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(totals, blocks);
        atomicAdd(totals + 1, entries);
    }
}

/// Nodes that are sorted together, one thread each.
template <int R, int C>
constexpr int window_nodes = window_slices* slice_nodes(BlockShape{R, C});

/// Gives the nodes of a window their slots, the longest first where their order would leave much padding, and each slice its
/// width, in whole groups if `whole`.
template <int R, int C, class T>
__global__ void __launch_bounds__(window_nodes<R, C>)
    sort_nodes_kernel(const NodeCount* counts, std::int64_t nodes, std::int64_t slices, bool whole,
                      std::uint32_t* node_of, BlockSlice* info, std::uint32_t* room)
{
    constexpr int each = slice_nodes(BlockShape{R, C});
    constexpr int window = window_nodes<R, C>;
    __shared__ int lengths[window];
    __shared__ int sorted[window];
    __shared__ bool holes[window];
    __shared__ int width_sum;
    __shared__ int block_sum;
    const int own = static_cast<int>(threadIdx.x);
    const std::int64_t first = std::int64_t{blockIdx.x} * window;
    const NodeCount node = first + own < nodes ? counts[first + own] : NodeCount{};
    const std::uint32_t count = node.blocks;
    // Nodes behind the last come after all others, and keep their slots.
    const int length = first + own >= nodes ? -1 : count == not_ascending ? 0 : static_cast<int>(count);
    const bool left_out = count == not_ascending;
    lengths[own] = length;
    if (own == 0) {
        width_sum = 0;
        block_sum = 0;
    }
    __syncthreads();
    atomicAdd(&block_sum, max(length, 0));
    if (own < window_slices) {
        int width = 0;
        for (int i = 0; i < each; ++i) {
            width = max(width, lengths[own * each + i]);
        }
        atomicAdd(&width_sum, width);
    }
    __syncthreads();
    int rank = own;
    if (std::int64_t{width_sum} * each * 100 > std::int64_t{block_sum} * (100 + sell_blocks_tuning.sorted_padding)) {
        rank = 0;
        for (int i = 0; i < window; ++i) {
            rank += lengths[i] > length || (lengths[i] == length && i < own) ? 1 : 0;
        }
    }
    const std::int64_t slice = first / each + rank / each;
    if (slice < slices) {
        node_of[first + rank] = static_cast<std::uint32_t>(min(first + own, nodes));
    }
    sorted[rank] = left_out ? std::numeric_limits<int>::max() : max(length, 0);
    holes[rank] = node.holes != 0;
    __syncthreads();
    if (own < window_slices && first / each + own < slices) {
        int width = 0;
        std::int64_t blocks = 0;
        bool full = true;
        for (int i = 0; i < each; ++i) {
            const int here = sorted[own * each + i];
            width = max(width, here);
            blocks += here;
            full = full && !holes[own * each + i];
        }
        const bool ascending = width != std::numeric_limits<int>::max();
        width = !ascending ? 0 : whole ? whole_groups<T>(width) : width;
        const std::int64_t here = min(nodes - (first + own * each), std::int64_t{each});
        const bool stored = blocks * 100 >= width * here * sell_blocks_tuning.least_fill;
        const std::uint32_t kept = stored ? static_cast<std::uint32_t>(width) : 0;
        info[first / each + own].width = kept | (full ? full_slice : 0);
        room[first / each + own] = static_cast<std::uint32_t>(slice_room<T>(static_cast<int>(kept)));
    }
}

static __global__ void __launch_bounds__(threads)
    place_slices_kernel(const std::uint32_t* firsts, std::int64_t slices, BlockSlice* info)
{
    const std::int64_t slice = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    if (slice < slices) {
        info[slice].first = firsts[slice];
    }
}

/// Copies values, stored as V, and codes if `structure`, from CSR into the slices, one thread a node. Values of padding are left alone.
template <int R, int C, class V, class T, class Offset>
__global__ void __launch_bounds__(threads)
    fill_blocks_kernel(const Matrix<T, Offset> a, bool structure, V* __restrict__ out)
{
    constexpr BlockShape shape{R, C};
    constexpr int nodes = slice_nodes(shape);
    const std::int64_t slot = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    const std::int64_t index = slot / nodes;
    const int own = static_cast<int>(slot % nodes);
    if (index >= a.slices || a.info[index].blocks() == 0) {
        return;
    }
    const BlockSlice slice = a.info[index];
    const int width = slice.blocks();
    V* const values = out + std::int64_t{slice.first} * slice_lanes(shape) * shape.lane_values();
    std::uint32_t* const codes = a.codes + std::int64_t{slice.first} * nodes;
    const std::int64_t node = a.node_of[slot];
    std::uint32_t filled = 0;
    if (node < a.nodes) {
        filled = for_each_block<R, C>(a, node, [&](std::uint32_t k, std::int32_t block, const Offset(&place)[R][C]) {
            std::uint32_t entries = 0;
#pragma unroll
            for (int r = 0; r < R; ++r) {
#pragma unroll
                for (int c = 0; c < C; ++c) {
                    const bool is = place[r][c] >= 0;
                    entries |= is ? 1u << (r * C + c) : 0u;
                    values[block_entry_place<T>(shape, width, static_cast<int>(k), own, r, c)] =
                        is ? static_cast<V>(a.entries[place[r][c]]) : V{0};
                }
            }
            if (structure) {
                codes[block_code_place<T>(shape, width, static_cast<int>(k), own)] =
                    block_code(shape, static_cast<std::uint32_t>(block), entries);
            }
        });
    }
    if (structure) {
        for (int k = static_cast<int>(filled); k < width; ++k) {
            codes[block_code_place<T>(shape, width, k, own)] = 0;
        }
    }
}

}  // namespace rmsp::kernels::sell_blocks
