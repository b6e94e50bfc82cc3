#pragma once

#include <algorithm>

#include <cooperative_groups.h>
#include <kernels/steps/coarsening/edges.cuh>

namespace rmsp::kernels::cuda::coarsening {

/// Of a row, while it is decided which become points of the coarser matrix.
enum State : std::uint8_t { undecided, fine, coarse };

constexpr int root_threads = 512;
constexpr int root_blocks = 4;  // of a multiprocessor

/// Chooses roots in the order of the rows: a row becomes one unless a row before it, one or two steps away, is one. It
/// comes as soon as it is the first around itself and around each of its neighbours that is still open. Rows around a
/// root are closed at once, whatever is before them, so that decisions do not wait for each other along whole lines.
///
/// What other blocks write within the kernel is read past the first cache, which does not see it.
struct Order {
    struct Counts {
        unsigned long long roots, closed;  ///< in the queue
        unsigned long long decided;        ///< of the roots, those around which rows are closed
    };

    Edges edges;
    std::int64_t rows;
    std::int32_t* missing;  ///< of each open row: itself and its neighbours around which another open row is before it;
                            ///< 0: a root; less: closed
    std::int32_t* first;    ///< of each row: of it and its neighbours, the first that is open, or their root; -1: none
    std::int32_t* queue;    ///< roots from the front, closed rows from the back
    std::uint8_t* state;
    Counts* counts;

    __device__ __forceinline__ bool is_open(std::int64_t row) const { return __ldcg(missing + row) >= 0; }
    __device__ __forceinline__ bool is_strong(std::int64_t k) const { return edges.strong[k] == matrix::mark::strong; }
    /// `row` is the first that is open around one more.
    __device__ __forceinline__ void allow(std::int32_t row) const
    {
        if (atomicSub(missing + row, 1) == 1) {
            queue[atomicAdd(&counts->roots, 1ULL)] = row;
        }
    }
    __device__ __forceinline__ std::int32_t closed(unsigned long long i) const
    {
        return __ldcg(queue + (rows - 1 - static_cast<std::int64_t>(i)));
    }
    __device__ __forceinline__ void set_closed(unsigned long long i, std::int32_t row) const
    {
        queue[rows - 1 - static_cast<std::int64_t>(i)] = row;
    }
};

/// `Lanes` threads of a warp that do something together; of all threads of a grid there are `count` such groups.
template <int Lanes>
struct LaneGroup {
    static constexpr int in_block = root_threads / Lanes;

    int lane = static_cast<int>(threadIdx.x) % Lanes;
    unsigned long long number = (std::uint64_t{blockIdx.x} * root_threads + threadIdx.x) / Lanes;
    unsigned long long count = std::uint64_t{gridDim.x} * in_block;
    unsigned first_bit = threadIdx.x % 32 / Lanes * Lanes;
    unsigned mask = (Lanes == 32 ? ~0U : (1U << (Lanes % 32)) - 1) << first_bit;

    /// Which lanes say yes.
    __device__ __forceinline__ unsigned ballot(bool yes) const { return __ballot_sync(mask, yes) >> first_bit; }
    template <class X>
    __device__ __forceinline__ X of(unsigned lanes, X x) const
    {
        return __shfl_sync(mask, x, __ffs(static_cast<int>(lanes)) - 1, Lanes);
    }
};

/// What a block found, in its shared memory, so that many threads do not count in one place of the device's.
struct BlockList {
    static constexpr int room = 4 * root_threads;
    struct Pair {
        std::int32_t middle, row;
    };

    Pair pairs[room];
    int size;
    unsigned long long place;
};

/// A row around a root: closed, if it was open.
__device__ __forceinline__ void close_row(const Order& order, BlockList& list, std::int32_t row)
{
    if (!order.is_open(row) || atomicExch(order.missing + row, -1) < 0) {
        return;
    }
    const int at = atomicAdd(&list.size, 1);
    if (at < BlockList::room) {
        list.pairs[at].row = row;
    } else {
        order.set_closed(atomicAdd(&order.counts->closed, 1ULL), row);
    }
}

/// Closes what is around the roots [begin, end): `Lanes` groups a root, each of which takes some of its neighbours.
template <int Lanes>
__device__ void close_around(const Order& order, BlockList& list, unsigned long long begin, unsigned long long end)
{
    const Edges& edges = order.edges;
    const LaneGroup<Lanes> group;
    for (unsigned long long i = begin * Lanes + group.number; i < end * Lanes; i += group.count) {
        const std::int32_t root = __ldcg(order.queue + i / Lanes);
        if (i % Lanes == 0 && group.lane == 0) {
            order.state[root] = coarse;
        }
        for (std::int64_t k = edges.row_ptr[root] + static_cast<int>(i % Lanes); k < edges.row_ptr[root + 1];
             k += Lanes) {
            if (!order.is_strong(k)) {
                continue;
            }
            const std::int32_t middle = edges.columns[k];
            if (group.lane == 0) {
                close_row(order, list, middle);
            }
            for (std::int64_t at = edges.row_ptr[middle] + group.lane; at < edges.row_ptr[middle + 1]; at += Lanes) {
                if (order.is_strong(at) && edges.columns[at] != root) {
                    close_row(order, list, edges.columns[at]);
                }
            }
        }
    }
    __syncthreads();
    const int size = min(list.size, BlockList::room);
    if (threadIdx.x == 0 && size > 0) {
        list.place = atomicAdd(&order.counts->closed, static_cast<unsigned long long>(size));
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < size; i += root_threads) {
        order.set_closed(list.place + static_cast<unsigned>(i), list.pairs[i].row);
    }
    if (threadIdx.x == 0) {
        list.size = 0;
    }
}

/// Of a row and its neighbours, the first after row `last` that is open; -1: none.
template <int Lanes>
__device__ std::int32_t next_open(const Order& order, const LaneGroup<Lanes>& group, std::int32_t row,
                                  std::int32_t last)
{
    constexpr std::int64_t few = 4 * Lanes;
    const Edges& edges = order.edges;
    const std::int64_t end = edges.row_ptr[row + 1];
    std::int64_t at = edges.row_ptr[row];
    if (end - at > few) {
        at = edges.place(row, last + std::int64_t{1});
    }
    const std::int32_t itself = row > last && order.is_open(row) ? row : -1;
    for (; at < end; at += Lanes) {
        std::int32_t column = -1;
        if (at + group.lane < end && order.is_strong(at + group.lane)) {
            column = edges.columns[at + group.lane];
        }
        const unsigned lanes = group.ballot(column > last && order.is_open(column));
        if (lanes != 0) {
            const std::int32_t neighbour = group.of(lanes, column);
            return itself >= 0 && itself < neighbour ? itself : neighbour;
        }
    }
    return itself;
}

/// Around each pair's `middle` its `row` was the first that is open, until it was closed; another one is now.
template <int Lanes>
__device__ void advance_pairs(const Order& order, const BlockList& list)
{
    const LaneGroup<Lanes> group;
    for (int i = static_cast<int>(threadIdx.x) / Lanes; i < list.size; i += LaneGroup<Lanes>::in_block) {
        const BlockList::Pair pair = list.pairs[i];
        const std::int32_t next = next_open(order, group, pair.middle, pair.row);
        if (group.lane == 0) {
            order.first[pair.middle] = next;
            if (next >= 0) {
                order.allow(next);
            }
        }
    }
}

/// Where one of the closed rows [begin, end) was the first that is open, another one is now. Each group lists where,
/// and all groups of a block share what is listed: of some rows there is much, of most nothing.
template <int Lanes>
__device__ void advance_from(const Order& order, BlockList& list, unsigned long long begin, unsigned long long end)
{
    const Edges& edges = order.edges;
    const LaneGroup<Lanes> group;
    unsigned long long i = begin + group.number;
    std::int32_t row = -1;
    std::int64_t k = 0;
    std::int64_t behind = 0;
    const auto note = [&](std::int32_t middle) {
        if (__ldcg(order.first + middle) == row) {
            list.pairs[atomicAdd(&list.size, 1)] = {middle, row};
        }
    };
    while (true) {
        if (row < 0 && i < end) {
            row = order.closed(i);
            k = edges.row_ptr[row];
            behind = edges.row_ptr[row + 1];
            i += group.count;
            if (group.lane == 0) {
                note(row);
            }
        }
        const bool works = row >= 0;
        if (works) {
            if (k + group.lane < behind && order.is_strong(k + group.lane)) {
                note(edges.columns[k + group.lane]);
            }
            k += Lanes;
            row = k < behind ? row : -1;
        }
        const bool any = __syncthreads_or(works ? 1 : 0) != 0;
        // A step lists at most a pair a thread, and one a group.
        const bool full = list.size > BlockList::room - 2 * root_threads;
        __syncthreads();
        if (!any || full) {
            advance_pairs<Lanes>(order, list);
            __syncthreads();
            if (threadIdx.x == 0) {
                list.size = 0;
            }
            __syncthreads();
        }
        if (!any) {
            return;
        }
    }
}

/// Rounds, of all blocks together: what is around the roots that are known is closed; where a closed row was the first
/// that is open, another one is, which may make it a root. Ends when there are no more, or after `most_rounds`.
template <int Lanes>
__global__ void __launch_bounds__(root_threads, root_blocks) roots_kernel(Order order, int most_rounds)
{
    __shared__ BlockList list;
    const auto grid = cooperative_groups::this_grid();
    if (threadIdx.x == 0) {
        list.size = 0;
    }
    __syncthreads();
    unsigned long long begin = 0;
    unsigned long long closed_begin = 0;
    for (int round = 0; round < most_rounds; ++round) {
        const unsigned long long end = __ldcg(&order.counts->roots);
        if (begin == end) {
            break;
        }
        close_around<Lanes>(order, list, begin, end);
        grid.sync();
        const unsigned long long closed_end = __ldcg(&order.counts->closed);
        advance_from<Lanes>(order, list, closed_begin, closed_end);
        grid.sync();
        begin = end;
        closed_begin = closed_end;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        order.counts->decided = begin;
    }
}

/// As many roots as there can be, three steps apart. Returns false where too many wait for each other, as along a line,
/// and where blocks cannot wait for each other: the host is faster. \param nnz  of the matrix
inline bool choose_roots(std::int64_t rows, std::int64_t nnz, const Edges& edges, std::uint8_t* state,
                         const Context& context)
{
    constexpr int most_rounds = 4096;
    const auto n = static_cast<std::size_t>(rows);
    const DeviceArray<std::int32_t> missing(*context.memory, n);
    const DeviceArray<std::int32_t> first(*context.memory, n);
    const DeviceArray<std::int32_t> queue(*context.memory, n);
    const DeviceArray<Order::Counts> counts = zeros<Order::Counts>(1, context);
    Order order{edges, rows, missing.data(), first.data(), queue.data(), state, counts.data()};
    for_each(rows, context, [order] __device__(std::int64_t row) {
        std::int32_t neighbours = 0;
        auto least = static_cast<std::int32_t>(row);
        order.edges.from(row, [&](std::int32_t other) {
            ++neighbours;
            least = other < least ? other : least;
            return true;
        });
        order.state[row] = fine;
        // A row without neighbours never comes.
        order.missing[row] = neighbours == 0 ? -1 : neighbours + 1;
        order.first[row] = neighbours == 0 ? -1 : least;
    });
    for_each(rows, context, [order] __device__(std::int64_t row) {
        if (order.first[row] >= 0) {
            order.allow(order.first[row]);
        }
    });
    const bool wide = nnz > 12 * rows;  // so that a row of mean length takes about one step
    const void* const kernel =
        wide ? reinterpret_cast<const void*>(roots_kernel<32>) : reinterpret_cast<const void*>(roots_kernel<8>);
    int device = 0;
    int cooperates = 0;
    int resident = 0;
    RMSP_CUDA_CHECK(cudaGetDevice(&device));
    RMSP_CUDA_CHECK(cudaDeviceGetAttribute(&cooperates, cudaDevAttrCooperativeLaunch, device));
    RMSP_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, root_threads, 0));
    if (cooperates == 0 || resident == 0) {
        return false;
    }
    const auto blocks = static_cast<unsigned>(
        std::min<std::int64_t>(blocks_for(rows, root_threads / 8),
                               std::int64_t{std::min(resident, root_blocks)} * std::max(context.compute_units, 1)));
    int rounds = most_rounds;
    void* arguments[] = {&order, &rounds};
    RMSP_CUDA_CHECK(
        cudaLaunchCooperativeKernel(kernel, dim3(blocks), dim3(root_threads), arguments, 0, stream_of(context)));
    const auto found = fetch(counts.data(), context);
    return found.decided == found.roots;
}

}  // namespace rmsp::kernels::cuda::coarsening
