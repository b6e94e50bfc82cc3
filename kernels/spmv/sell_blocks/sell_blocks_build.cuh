#pragma once

#include <cstdint>
#include <limits>

#include <cuda_runtime.h>
#include <kernels/cuda_block.cuh>
#include <kernels/spmv/common/common_values.hpp>
#include <kernels/spmv/sell_blocks/layout.hpp>

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

/// Entries of the rows of a node that one lane goes through, as indices in the CSR arrays.
template <int R, class Offset>
struct NodeEntries {
    Offset at[R];
    Offset end[R];
};

/// All of them; none of a node that is not there.
template <int R, class T, class Offset>
__device__ __forceinline__ NodeEntries<R, Offset> node_entries(const Matrix<T, Offset>& a, std::int64_t node)
{
    NodeEntries<R, Offset> all;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const std::int64_t row = node * R + r - a.shift;
        const bool is = row >= 0 && row < a.rows;
        all.at[r] = is ? a.row_ptr[row] : 0;
        all.end[r] = is ? a.row_ptr[row + 1] : 0;
    }
    return all;
}

/// Whether the columns of each row of a node ascend; all of the `lanes` lanes that share it ask.
template <int R, class T, class Offset>
__device__ __forceinline__ bool columns_ascend(const Matrix<T, Offset>& a, const NodeEntries<R, Offset>& all, int lane,
                                               int lanes)
{
    bool ascend = true;
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll 4  // without a condition on what was found before, several loads are under way
        for (Offset i = all.at[r] + lane; i + 1 < all.end[r]; i += lanes) {
            ascend &= a.col_idx[i] < a.col_idx[i + 1];
        }
    }
    const unsigned own = lanes == 32 ? ~0u : ((1u << lanes) - 1) << (threadIdx.x % 32 / lanes * lanes);
    return (__ballot_sync(0xffffffffu, !ascend) & own) == 0;
}

/// What a lane goes through: of columns that ascend, whole blocks, about as many of the longest row as each of the
/// other lanes. All lanes of the warp.
template <int R, int C, class T, class Offset>
__device__ __forceinline__ NodeEntries<R, Offset> share_of_lane(const Matrix<T, Offset>& a,
                                                                const NodeEntries<R, Offset>& all, int lane, int lanes)
{
    Offset from = all.at[0];
    Offset length = all.end[0] - all.at[0];
#pragma unroll
    for (int r = 1; r < R; ++r) {
        const Offset other = all.end[r] - all.at[r];
        from = other > length ? all.at[r] : from;
        length = max(length, other);
    }
    NodeEntries<R, Offset> share = all;
    if (lane > 0 && length > 0) {
        const auto cut = static_cast<Offset>(std::int64_t{length} * lane / lanes);
        const std::int32_t first = a.col_idx[from + cut] / C * C;
        // All rows at once, since each step waits for its loads.
        Offset high[R];
#pragma unroll
        for (int r = 0; r < R; ++r) {
            high[r] = all.end[r];
        }
        for (bool found = false; !found;) {
            found = true;
#pragma unroll
            for (int r = 0; r < R; ++r) {
                const Offset middle = share.at[r] + (high[r] - share.at[r]) / 2;
                const bool left = share.at[r] < high[r];
                const bool below = left && a.col_idx[middle] < first;
                share.at[r] = below ? middle + 1 : share.at[r];
                high[r] = left && !below ? middle : high[r];
                found = found && share.at[r] >= high[r];
            }
        }
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const Offset next = __shfl_down_sync(0xffffffffu, share.at[r], 1, lanes);
        share.end[r] = lane + 1 < lanes ? next : all.end[r];
    }
    return share;
}

/// Goes through blocks from left to right, in columns that ascend: f(k, block column, place[R][C]) with the index of
/// each entry in the CSR arrays, -1 where there is none. Returns the number of blocks.
template <int R, int C, class T, class Offset, class F>
__device__ __forceinline__ std::uint32_t for_each_block(const Matrix<T, Offset>& a, NodeEntries<R, Offset> entries,
                                                        F&& f)
{
    for (std::uint32_t k = 0;; ++k) {
        // All that may be of the next block is asked for at once.
        constexpr std::int32_t none = std::numeric_limits<std::int32_t>::max();
        std::int32_t column[R][C];
        std::int32_t block = none / C;
#pragma unroll
        for (int r = 0; r < R; ++r) {
#pragma unroll
            for (int i = 0; i < C; ++i) {
                column[r][i] = entries.end[r] - entries.at[r] > i ? a.col_idx[entries.at[r] + i] : none;
            }
            block = min(block, column[r][0] / C);
        }
        if (block == none / C) {
            return k;
        }
        Offset place[R][C];
#pragma unroll
        for (int r = 0; r < R; ++r) {
            int of_block = 0;
#pragma unroll
            for (int c = 0; c < C; ++c) {
                place[r][c] = -1;
#pragma unroll
                for (int i = 0; i <= c; ++i) {  // as columns ascend
                    place[r][c] = column[r][i] == block * C + c ? entries.at[r] + i : place[r][c];
                }
                of_block += place[r][c] >= 0 ? 1 : 0;
            }
            entries.at[r] += of_block;
        }
        f(k, block, place);
    }
}

/// A way to cut rows into nodes: what count_blocks_kernel() tries.
struct Nodes {
    BlockShape shape;
    int shift = 0;
    std::int64_t count = 0;
    std::int64_t first = 0;  ///< place of their counts in those of all ways
};
inline constexpr int most_ways = 7;
struct Ways {
    Nodes way[most_ways];
    int count = 0;
};

/// What is found in the nodes that are counted.
struct WayCount {
    unsigned long long blocks;
    unsigned long long entries;  ///< in them
    unsigned long long seen;     ///< those of rows whose columns do not ascend, too
};
template <class T>
struct Found {
    WayCount counts[most_ways];
    FoundValues<T> values;
    std::uint32_t room;  ///< blocks a node that all slices have room for
};

template <int R, int C, class T, class Offset>
__device__ __forceinline__ void count_blocks(const Matrix<T, Offset>& a, int lanes, int sample, NodeCount* counts,
                                             WayCount& sum)
{
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    const std::int64_t stretch = std::int64_t{sample} * threads / lanes;  // of nodes, for a thread block
    // All lanes of a warp go on as long as one has a node.
    for (std::int64_t first = blockIdx.x * stretch + threadIdx.x / 32 * 32 / lanes; first < a.nodes;
         first += gridDim.x * stretch) {
        const std::int64_t node = first + threadIdx.x % 32 / lanes;
        const NodeEntries<R, Offset> all = node_entries<R>(a, min(node, a.nodes));
        const bool ascend = columns_ascend(a, all, lane, lanes);
        const NodeEntries<R, Offset> share = share_of_lane<R, C>(a, all, lane, lanes);
        std::uint32_t count = 0;
        if (ascend) {
            count = for_each_block<R, C>(a, share, [](std::uint32_t, std::int32_t, const Offset(&)[R][C]) {});
        }
        for (int offset = lanes / 2; offset > 0; offset /= 2) {
            count += __shfl_xor_sync(0xffffffffu, count, offset);
        }
        if (lane == 0 && node < a.nodes) {
            unsigned long long own = 0;
#pragma unroll
            for (int r = 0; r < R; ++r) {
                own += static_cast<unsigned long long>(all.end[r] - all.at[r]);
            }
            NodeCount kept{not_ascending, 0};
            if (ascend) {
                kept = {count, own != std::uint64_t{count} * (R * C) ? 1u : 0u};
                sum.blocks += count;
                sum.entries += own;
            }
            sum.seen += own;
            if (counts != nullptr) {
                counts[node] = kept;
            }
        }
    }
}

/// Counts the blocks of each node, `lanes` lanes a node, or of the nodes of one stretch in `sample`; one row of thread
/// blocks for each way. Without `counts`, adds them up only.
template <class T, class Offset>
__global__ void __launch_bounds__(threads)
    count_blocks_kernel(Matrix<T, Offset> a, const Ways ways, int lanes, int sample, NodeCount* counts, Found<T>* found)
{
    __shared__ unsigned long long sums[3];
    if (threadIdx.x < 3) {
        sums[threadIdx.x] = 0;
    }
    __syncthreads();
    const Nodes& way = ways.way[blockIdx.y];
    a.nodes = way.count;
    a.shift = way.shift;
    NodeCount* const own = counts != nullptr ? counts + way.first : nullptr;
    WayCount sum{};
    if (way.shape == BlockShape{3, 3}) {
        count_blocks<3, 3>(a, lanes, sample, own, sum);
    } else if (way.shape == BlockShape{2, 3}) {
        count_blocks<2, 3>(a, lanes, sample, own, sum);
    } else {
        count_blocks<2, 2>(a, lanes, sample, own, sum);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        sum.blocks += __shfl_down_sync(0xffffffffu, sum.blocks, offset);
        sum.entries += __shfl_down_sync(0xffffffffu, sum.entries, offset);
        sum.seen += __shfl_down_sync(0xffffffffu, sum.seen, offset);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(sums, sum.blocks);
        atomicAdd(sums + 1, sum.entries);
        atomicAdd(sums + 2, sum.seen);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        WayCount& to = found->counts[blockIdx.y];
        atomicAdd(&to.blocks, sums[0]);
        atomicAdd(&to.entries, sums[1]);
        atomicAdd(&to.seen, sums[2]);
    }
}

/// Nodes that are sorted together, one thread each.
template <int R, int C>
constexpr int window_nodes = window_slices* slice_nodes(BlockShape{R, C});

/// Gives the nodes of a window their slots, the longest first where their order would leave much padding, and each
/// slice its width, in whole groups if `whole`.
template <int R, int C, class T>
__global__ void __launch_bounds__(window_nodes<R, C>)
    sort_nodes_kernel(const NodeCount* counts, std::int64_t nodes, std::int64_t slices, bool whole,
                      std::uint32_t* node_of, BlockSlice* info)
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
    }
}

inline constexpr int place_threads = 1024;

/// Puts each slice behind the ones before, by one block: there is one slice for about 32 rows, so this is little beside
/// the other kernels.
template <class T>
__global__ void __launch_bounds__(place_threads)
    place_slices_kernel(BlockSlice* info, std::int64_t slices, std::uint32_t* room)
{
    constexpr int per_thread = 4;
    __shared__ std::uint32_t warp_sums[place_threads / 32];
    std::uint32_t before = 0;
    for (std::int64_t first = 0; first < slices; first += place_threads * per_thread) {
        const std::int64_t own = first + std::int64_t{threadIdx.x} * per_thread;
        std::uint32_t size[per_thread];
        std::uint32_t sum = 0;
#pragma unroll
        for (int i = 0; i < per_thread; ++i) {
            size[i] = own + i < slices ? static_cast<std::uint32_t>(slice_room<T>(info[own + i].blocks())) : 0;
            sum += size[i];
        }
        std::uint32_t at = before + cuda::block_prefix(sum, warp_sums) - sum;
#pragma unroll
        for (int i = 0; i < per_thread; ++i) {
            if (own + i < slices) {
                info[own + i].first = at;
            }
            at += size[i];
        }
        before += warp_sums[place_threads / 32 - 1];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        *room = before;
    }
}

/// Copies values, stored as V, and codes if `structure`, from CSR into the slices, `lanes` lanes a node. Values of
/// padding are left alone.
template <int R, int C, class V, class T, class Offset>
__global__ void __launch_bounds__(threads)
    fill_blocks_kernel(const Matrix<T, Offset> a, bool structure, int lanes, V* __restrict__ out)
{
    constexpr BlockShape shape{R, C};
    constexpr int nodes = slice_nodes(shape);
    const std::int64_t slot = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / lanes;
    const std::int64_t index = slot / nodes;
    const int own = static_cast<int>(slot % nodes);
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    const BlockSlice slice = index < a.slices ? a.info[index] : BlockSlice{};
    const int width = slice.blocks();
    const std::int64_t node = width > 0 ? a.node_of[slot] : a.nodes;
    const NodeEntries<R, Offset> share = share_of_lane<R, C>(a, node_entries<R>(a, min(node, a.nodes)), lane, lanes);
    const std::uint32_t count =
        lanes > 1 ? for_each_block<R, C>(a, share, [](std::uint32_t, std::int32_t, const Offset(&)[R][C]) {}) : 0;
    std::uint32_t before = count;
    for (int offset = 1; offset < lanes; offset *= 2) {
        const std::uint32_t left = __shfl_up_sync(0xffffffffu, before, offset, lanes);
        before += lane >= offset ? left : 0;
    }
    before -= count;
    if (width == 0) {
        return;
    }
    V* const values = out + std::int64_t{slice.first} * slice_lanes(shape) * shape.lane_values();
    std::uint32_t* const codes = a.codes + std::int64_t{slice.first} * nodes;
    const std::uint32_t filled =
        for_each_block<R, C>(a, share, [&](std::uint32_t i, std::int32_t block, const Offset(&place)[R][C]) {
            const auto k = static_cast<int>(before + i);
            std::uint32_t entries = 0;
#pragma unroll
            for (int r = 0; r < R; ++r) {
#pragma unroll
                for (int c = 0; c < C; ++c) {
                    const bool is = place[r][c] >= 0;
                    entries |= is ? 1u << (r * C + c) : 0u;
                    values[block_entry_place<T>(shape, width, k, own, r, c)] =
                        is ? static_cast<V>(a.entries[place[r][c]]) : V{0};
                }
            }
            if (structure) {
                codes[block_code_place<T>(shape, width, k, own)] =
                    block_code(shape, static_cast<std::uint32_t>(block), entries);
            }
        });
    if (structure && lane == lanes - 1) {
        for (int k = static_cast<int>(before + filled); k < width; ++k) {
            codes[block_code_place<T>(shape, width, k, own)] = 0;
        }
    }
}

}  // namespace rmsp::kernels::sell_blocks
