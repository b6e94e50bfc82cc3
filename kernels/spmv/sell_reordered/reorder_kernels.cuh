#pragma once

#include <cstdint>

#include <cuda_runtime.h>
#include <kernels/cuda_barrier.cuh>
#include <kernels/spmv/common/row_pointers.cuh>
#include <kernels/spmv/sell_reordered/reorder.hpp>

/// The search through the graph of a matrix, level by level, and the order of its vertices: order_rows.cu alone
/// includes it.
namespace rmsp::kernels {
namespace {

constexpr int reorder_threads = reorder_tuning.threads;
constexpr int warps = reorder_threads / 32;
constexpr unsigned whole_warp = 0xffffffffu;
using Key = unsigned long long;
constexpr Key no_key = ~Key{0};
/// Children of one parent that are sorted, for each lane that looks at its row.
constexpr int sorted_rounds = reorder_tuning.sorted_rounds;

struct Graph {
    std::int64_t rows;
    EitherPointers row_ptr;
    const std::int32_t* col_idx;
    std::int64_t diagonal;
};

/// What the blocks share.
struct Search {
    Key farthest;       ///< degree and number of the vertex to begin at: the least
    unsigned arrived;   ///< at the barrier, ever
    unsigned found[3];  ///< vertices of a level of the search: of this one, the one before and the next
    unsigned taken;     ///< vertices that begin anew
    unsigned levels;
    unsigned widest;
    unsigned stopped;  ///< no order was made
    unsigned starts;   ///< vertices that begin at once
    unsigned twins;
};

struct Arrays {
    Graph graph;
    std::int32_t* row;       ///< of each place; before that, the queue of the search
    std::int32_t* place;     ///< of each row; -1: not reached yet
    Key* weight;             ///< of each row: its length, then the sum of its columns' marks
    Key* parent;             ///< place of the parent + 1, then which of its entries; 0: none; no_key: not reached yet
    unsigned* block_totals;  ///< children that the parents of each block have
    Search* search;
};

/// Several lanes of a warp that look at one row.
template <int Lanes>
struct Group {
    static constexpr int in_warp = 32 / Lanes;
    int lane = static_cast<int>(threadIdx.x) % Lanes;
    int index = static_cast<int>(threadIdx.x) % 32 / Lanes;  ///< in the warp
    unsigned mask = Lanes == 32 ? whole_warp : ((1u << Lanes) - 1) << (index * Lanes);

    /// Lanes of this group before this one, of those that are set in a ballot.
    __device__ int before(unsigned ballot) const { return __popc(ballot & ((1u << (threadIdx.x % 32)) - 1)); }
};

/// The entries of a row that a group looks at.
struct Neighbours {
    std::int64_t begin = 0;
    std::int64_t length = 0;
    std::int64_t first = -1;  ///< this lane's first vertex; -1: none
};

__device__ __forceinline__ std::int64_t vertex_at(const Graph& graph, const Neighbours& row, std::int64_t k)
{
    if (k >= row.length) {
        return -1;
    }
    const std::int64_t vertex = __ldg(graph.col_idx + row.begin + k) - graph.diagonal;
    return vertex >= 0 && vertex < graph.rows ? vertex : -1;
}

template <int Lanes>
__device__ __forceinline__ Neighbours neighbours_of(const Graph& graph, const Group<Lanes>& group, std::int64_t row)
{
    Neighbours n;
    n.begin = fetch(graph.row_ptr, row);
    n.length = fetch(graph.row_ptr, row + 1) - n.begin;
    n.first = vertex_at(graph, n, group.lane);
    return n;
}

/// Calls visit(vertex or -1, entry of the row) for each entry, by all lanes of the group together.
template <int Lanes, class Visit>
__device__ __forceinline__ void each_neighbour(const Graph& graph, const Group<Lanes>& group, const Neighbours& row,
                                               const Visit& visit)
{
    if (row.length > 0) {
        visit(row.first, std::int64_t{group.lane});
    }
    for (std::int64_t first = Lanes; first < row.length; first += Lanes) {
        visit(vertex_at(graph, row, first + group.lane), first + group.lane);
    }
}

/// Breadth-first levels from the vertex `search->farthest`; leaves there one of least degree of the last level. `place`
/// of what was reached is 0 then.
template <int Lanes>
__device__ void find_farthest(const Arrays& a, const ReorderTuning& tuning, GridBarrier& barrier)
{
    const Group<Lanes> group;
    Search& search = *a.search;
    const std::int64_t groups = std::int64_t{gridDim.x} * reorder_threads / Lanes;
    const std::int64_t own = (std::int64_t{blockIdx.x} * reorder_threads + threadIdx.x) / Lanes;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        const auto start = static_cast<std::int32_t>(search.farthest & 0xffffffffu);
        a.row[0] = start;
        a.place[start] = 0;
        search.farthest = no_key;
    }
    barrier.wait();
    unsigned begin = 0;
    unsigned end = 1;
    unsigned levels = 0;
    unsigned widest = 1;
    const unsigned too_wide = static_cast<unsigned>(a.graph.rows / tuning.least_levels);
    const bool may_stop = a.graph.rows > tuning.small_rows;
    while (true) {
        unsigned* const found_here = search.found + levels % 3;
        ++levels;
        for (std::int64_t i = begin + own; i < end; i += groups) {
            each_neighbour(a.graph, group, neighbours_of(a.graph, group, a.row[i]), [&](std::int64_t v, std::int64_t) {
                const bool found = v >= 0 && __ldcg(a.place + v) < 0 && atomicExch(a.place + v, 0) < 0;
                const unsigned ballot = __ballot_sync(group.mask, found);
                unsigned at = 0;
                if (group.lane == 0 && ballot != 0) {
                    at = end + atomicAdd(found_here, static_cast<unsigned>(__popc(ballot)));
                }
                at = __shfl_sync(group.mask, at, 0, Lanes);
                if (found) {
                    a.row[at + group.before(ballot)] = static_cast<std::int32_t>(v);
                }
            });
        }
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            // Of the next level: all have read what it held two levels ago.
            search.found[levels % 3] = 0;
        }
        barrier.wait();
        const unsigned found = *found_here;
        widest = max(widest, found);
        if (found == 0 || levels == static_cast<unsigned>(tuning.searched_levels) || (may_stop && widest > too_wide)) {
            break;
        }
        begin = end;
        end += found;
    }
    for (std::int64_t i = begin + std::int64_t{blockIdx.x} * reorder_threads + threadIdx.x; i < end;
         i += std::int64_t{gridDim.x} * reorder_threads) {
        const std::int32_t v = a.row[i];
        atomicMin(&search.farthest, (a.weight[v] >> 32 << 32) | static_cast<unsigned>(v));
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        search.levels = levels;
        search.widest = widest;
        search.stopped = may_stop && widest > too_wide ? 1 : 0;
        search.starts = levels < static_cast<unsigned>(tuning.searched_levels)
                            ? 1
                            : static_cast<unsigned>(starts_at_once(a.graph.rows, end));
    }
    barrier.wait();
}

/// Places the vertices that begin first: the farthest one, or `search->starts` evenly spread ones. One block.
__device__ void place_first(const Arrays& a)
{
    const std::int64_t starts = a.search->starts;
    const auto farthest = static_cast<std::int64_t>(a.search->farthest & 0xffffffffu);
    for (std::int64_t i = threadIdx.x; i < starts; i += reorder_threads) {
        const std::int64_t v = starts == 1 ? farthest : a.graph.rows * i / starts;
        a.row[i] = static_cast<std::int32_t>(v);
        a.place[v] = static_cast<std::int32_t>(i);
        a.parent[v] = 0;
    }
    if (threadIdx.x == 0) {
        a.search->taken = static_cast<unsigned>(starts);
    }
}

/// Places up to `wanted` vertices without a parent at `at` and behind, those that come first from `cursor` on, which
/// moves to where the next may be. One block.
__device__ void place_starts(const Arrays& a, std::int64_t& cursor, std::int64_t at, std::int64_t wanted)
{
    __shared__ unsigned counts[warps];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    std::int64_t taken = 0;
    while (cursor < a.graph.rows && taken < wanted) {
        const std::int64_t v = cursor + threadIdx.x;
        const bool is_free = v < a.graph.rows && a.parent[v] == no_key;
        const unsigned ballot = __ballot_sync(whole_warp, is_free);
        if (threadIdx.x % 32 == 0) {
            counts[warp] = static_cast<unsigned>(__popc(ballot));
        }
        __syncthreads();
        unsigned before = 0;
        unsigned all = 0;
        for (int w = 0; w < warps; ++w) {
            before += w < warp ? counts[w] : 0;
            all += counts[w];
        }
        const std::int64_t place = taken + before + __popc(ballot & ((1u << (threadIdx.x % 32)) - 1));
        if (is_free && place < wanted) {
            a.parent[v] = 0;
            a.row[at + place] = static_cast<std::int32_t>(v);
            a.place[v] = static_cast<std::int32_t>(at + place);
        }
        __syncthreads();
        cursor += taken + all <= wanted ? reorder_threads : 0;
        taken = min(taken + all, wanted);
    }
    if (threadIdx.x == 0) {
        a.search->taken = static_cast<unsigned>(taken);
    }
}

/// Children of the vertex at `place`; all lanes of the group.
template <int Lanes>
__device__ int count_children(const Arrays& a, const Group<Lanes>& group, std::int64_t place, const Neighbours& row)
{
    int count = 0;
    each_neighbour(a.graph, group, row, [&](std::int64_t v, std::int64_t k) {
        const bool child = v >= 0 && a.parent[v] == (static_cast<Key>(place + 1) << 32 | static_cast<Key>(k));
        count += __popc(__ballot_sync(group.mask, child));
    });
    return count;
}

/// Places the children of the vertex at `place` at `at` and behind; all lanes of the group.
template <int Lanes>
__device__ void place_children(const Arrays& a, const Group<Lanes>& group, std::int64_t place, const Neighbours& row,
                               std::int64_t at, int count)
{
    int before = 0;
    each_neighbour(a.graph, group, row, [&](std::int64_t v, std::int64_t k) {
        const bool child = v >= 0 && a.parent[v] == (static_cast<Key>(place + 1) << 32 | static_cast<Key>(k));
        const unsigned ballot = __ballot_sync(group.mask, child);
        if (child) {
            const std::int64_t to = at + before + group.before(ballot & group.mask);
            a.row[to] = static_cast<std::int32_t>(v);
            a.place[v] = static_cast<std::int32_t>(to);
        }
        before += __popc(ballot);
    });
    // By weight, which more children than that have not: parents of so many are few.
    if (count > 1 && count <= sorted_rounds * Lanes) {
        __syncwarp(group.mask);
        std::int32_t child[sorted_rounds];
        int rank[sorted_rounds];
#pragma unroll
        for (int r = 0; r < sorted_rounds; ++r) {
            const int own = r * Lanes + group.lane;
            child[r] = own < count ? a.row[at + own] : 0;
            const Key weight = own < count ? a.weight[child[r]] : 0;
            rank[r] = 0;
            for (int first = 0; first < count && r * Lanes < count; first += Lanes) {
                const Key theirs = first + group.lane < count ? a.weight[a.row[at + first + group.lane]] : no_key;
                for (int i = 0; i < min(Lanes, count - first); ++i) {
                    const Key other = __shfl_sync(group.mask, theirs, i, Lanes);
                    rank[r] += other < weight || (other == weight && first + i < own) ? 1 : 0;
                }
            }
        }
        __syncwarp(group.mask);
#pragma unroll
        for (int r = 0; r < sorted_rounds; ++r) {
            if (r * Lanes + group.lane < count) {
                a.row[at + rank[r]] = child[r];
                a.place[child[r]] = static_cast<std::int32_t>(at + rank[r]);
            }
        }
    }
}

/// The search, then the order, by one wave of blocks.
template <int Lanes>
__global__ void __launch_bounds__(reorder_threads, reorder_tuning.blocks_per_multiprocessor)
    order_kernel(const Arrays a, const ReorderTuning tuning)
{
    __shared__ unsigned warp_totals[warps];
    __shared__ unsigned before_block;
    __shared__ unsigned all_blocks;
    const Group<Lanes> group;
    GridBarrier barrier(&a.search->arrived);
    find_farthest<Lanes>(a, tuning, barrier);
    if (a.search->stopped != 0) {
        return;
    }
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const std::int64_t grid_warps = std::int64_t{gridDim.x} * warps;
    const std::int64_t own_warp = std::int64_t{blockIdx.x} * warps + warp;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t cursor = 0;
    std::int64_t starts = 1;
    int levels = 0;
    while (end < a.graph.rows) {
        if (begin == end) {
            if (blockIdx.x == 0) {
                if (end == 0) {
                    place_first(a);
                } else {
                    place_starts(a, cursor, end, levels < tuning.most_levels ? starts : a.graph.rows);
                }
            }
            barrier.wait();
            end += a.search->taken;
            starts = min(starts * tuning.more_starts, a.graph.rows);
            continue;
        }
        ++levels;
        // Runs of parents a warp, in their order, so that sums before a warp are places of its children.
        const std::int64_t run = (end - begin + grid_warps * Group<Lanes>::in_warp - 1) /
                                 (grid_warps * Group<Lanes>::in_warp) * Group<Lanes>::in_warp;
        const std::int64_t first = begin + own_warp * run;
        const std::int64_t last = min(first + run, end);
        // Small levels have one parent a group, whose row is loaded once.
        Neighbours mine;
        if (first + group.index < last) {
            mine = neighbours_of(a.graph, group, a.row[first + group.index]);
        }
        const auto row_of = [&](std::int64_t p) {
            return p == first + group.index ? mine : neighbours_of(a.graph, group, a.row[p]);
        };
        for (std::int64_t p = first + group.index; p < last; p += Group<Lanes>::in_warp) {
            each_neighbour(a.graph, group, row_of(p), [&](std::int64_t v, std::int64_t k) {
                const Key key = static_cast<Key>(p + 1) << 32 | static_cast<Key>(k);
                if (v >= 0 && __ldcg(a.parent + v) > key) {
                    atomicMin(a.parent + v, key);
                }
            });
        }
        barrier.wait();
        int children = 0;
        int own_children = 0;
        for (std::int64_t p = first + group.index; p < last; p += Group<Lanes>::in_warp) {
            const int count = count_children(a, group, p, row_of(p));
            own_children = p == first + group.index ? count : own_children;
            children += count;
        }
        children = static_cast<int>(__reduce_add_sync(whole_warp, group.lane == 0 ? children : 0));
        if (lane == 0) {
            warp_totals[warp] = static_cast<unsigned>(children);
        }
        __syncthreads();
        if (warp == 0) {
            const unsigned own = warp_totals[lane];
            unsigned sum = own;
            for (int offset = 1; offset < 32; offset *= 2) {
                const unsigned left = __shfl_up_sync(whole_warp, sum, offset);
                sum += lane >= offset ? left : 0;
            }
            warp_totals[lane] = sum - own;
            if (lane == 31) {
                a.block_totals[blockIdx.x] = sum;
                before_block = 0;
                all_blocks = 0;
            }
        }
        barrier.wait();
        for (unsigned block = threadIdx.x; block < (gridDim.x + 31) / 32 * 32; block += reorder_threads) {
            const unsigned total = block < gridDim.x ? a.block_totals[block] : 0;
            const unsigned before = __reduce_add_sync(whole_warp, block < blockIdx.x ? total : 0);
            const unsigned all = __reduce_add_sync(whole_warp, total);
            if (lane == 0) {
                atomicAdd(&before_block, before);
                atomicAdd(&all_blocks, all);
            }
        }
        __syncthreads();
        std::int64_t at = end + before_block + warp_totals[warp];
        for (std::int64_t p0 = first; p0 < last && children > 0; p0 += Group<Lanes>::in_warp) {
            const std::int64_t p = p0 + group.index;
            const Neighbours row = p < last ? row_of(p) : Neighbours{};
            const int count = p0 == first ? own_children : count_children(a, group, p, row);
            __syncwarp();
            int before = 0;
            int sum = 0;
#pragma unroll
            for (int g = 0; g < Group<Lanes>::in_warp; ++g) {
                const int of_group = __shfl_sync(whole_warp, count, g * Lanes);
                before += g < group.index ? of_group : 0;
                sum += of_group;
            }
            if (count > 0) {
                place_children(a, group, p, row, at + before, count);
            }
            __syncwarp();
            at += sum;
        }
        begin = end;
        end += all_blocks;
        if (levels >= tuning.most_levels) {
            begin = end;
        }
        barrier.wait();
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        a.search->levels = static_cast<unsigned>(levels);
    }
}

/// Weighs the rows, a group of lanes each, and finds one of most neighbours, as one that belongs to most of the graph:
/// `farthest` of the search has it in its lower half.
template <int Lanes>
__global__ void __launch_bounds__(reorder_threads) weigh_kernel(const Graph graph, Key* weight, Search* search)
{
    const Group<Lanes> group;
    Key best = 0;
    for (std::int64_t v = (std::int64_t{blockIdx.x} * reorder_threads + threadIdx.x) / Lanes; v < graph.rows;
         v += std::int64_t{gridDim.x} * reorder_threads / Lanes) {
        const std::int64_t begin = fetch(graph.row_ptr, v);
        const std::int64_t length = fetch(graph.row_ptr, v + 1) - begin;
        std::uint32_t marks = 0;
        for (std::int64_t k = group.lane; k < length; k += Lanes) {
            marks += column_mark(__ldg(graph.col_idx + begin + k));
        }
        for (int offset = Lanes / 2; offset > 0; offset /= 2) {
            marks += __shfl_xor_sync(group.mask, marks, offset, Lanes);
        }
        const Key degree = static_cast<Key>(min(length, std::int64_t{0x7fffffff})) << 32;
        if (group.lane == 0) {
            weight[v] = degree | marks;
        }
        best = max(best, degree | static_cast<unsigned>(v));
    }
    __syncwarp();
    for (int offset = 16; offset > 0; offset /= 2) {
        best = max(best, __shfl_xor_sync(whole_warp, best, offset));
    }
    if (threadIdx.x % 32 == 0) {
        atomicMax(&search->farthest, best);
    }
}

/// Counts the rows that follow one of the same weight.
__global__ void __launch_bounds__(reorder_threads)
    count_twins_kernel(std::int64_t rows, const std::int32_t* row, const Key* weight, Search* search)
{
    if (search->stopped != 0) {
        return;
    }
    const std::int64_t i = std::int64_t{blockIdx.x} * reorder_threads + threadIdx.x + 1;
    const int count = __syncthreads_count(i < rows && weight[row[i]] == weight[row[i - 1]] ? 1 : 0);
    if (threadIdx.x == 0) {
        atomicAdd(&search->twins, static_cast<unsigned>(count));
    }
}

}  // namespace

}  // namespace rmsp::kernels
