#pragma once

#include <algorithm>

#include <kernels/steps/coarsening/edges.cuh>

namespace rmsp::kernels::cuda::coarsening {

/// Of a row, while it is decided which become points of the coarser matrix.
enum State : std::uint8_t { undecided, fine, coarse };

/// Chooses roots in the order of the rows: a row becomes one unless a row before it, one or two steps away, is one. It
/// comes as soon as it is the first around itself and around each of its neighbours that is still open. Rows around a
/// root are closed at once, whatever is before them, so that decisions do not wait for each other along whole lines.
struct Order {
    /// Of the queue of roots: those of this round, and how many there are; of closed rows; blocks that are done.
    struct Bounds {
        unsigned long long begin, end, length;
        unsigned long long closed_begin, closed_end, closed_length;
        unsigned long long done;
    };

    Edges edges;
    std::int64_t rows;
    std::int32_t* missing;  ///< of each open row: itself and its neighbours around which another open row is before it;
                            ///< 0: a root; less: closed
    std::int32_t* first;    ///< of each row: of it and its neighbours, the first that is open, or their root; -1: none
    std::int32_t* queue;    ///< roots from the front, closed rows from the back
    std::uint8_t* state;
    Bounds* bounds;

    __device__ __forceinline__ bool is_open(std::int64_t row) const { return missing[row] >= 0; }
    /// `row` is the first that is open around one more.
    __device__ __forceinline__ void allow(std::int32_t row) const
    {
        if (atomicSub(missing + row, 1) == 1) {
            queue[atomicAdd(&bounds->length, 1ULL)] = row;
        }
    }
    __device__ __forceinline__ void close(std::int32_t row) const
    {
        if (is_open(row) && atomicExch(missing + row, -1) >= 0) {
            queue[rows - 1 - static_cast<std::int64_t>(atomicAdd(&bounds->closed_length, 1ULL))] = row;
        }
    }
    /// Whether this is the last block of a kernel, all of whose threads ask.
    __device__ __forceinline__ bool is_last_block() const
    {
        __threadfence();
        __syncthreads();
        return threadIdx.x == 0 && atomicAdd(&bounds->done, 1ULL) == gridDim.x - 1;
    }
};

/// `Lanes` threads of a warp that do something together; of all threads of a grid there are `count` such groups.
template <int Lanes>
struct Group {
    int lane = static_cast<int>(threadIdx.x) % Lanes;
    unsigned long long number = (std::uint64_t{blockIdx.x} * threads + threadIdx.x) / Lanes;
    unsigned long long count = std::uint64_t{gridDim.x} * threads / Lanes;
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

/// Closes what is around this round's roots: `Lanes` groups a root, each of which takes some of its neighbours.
template <int Lanes>
__global__ void __launch_bounds__(threads) close_kernel(Order order)
{
    const Edges& edges = order.edges;
    const Group<Lanes> group;
    const unsigned long long end = order.bounds->end;
    for (unsigned long long i = order.bounds->begin * Lanes + group.number; i < end * Lanes; i += group.count) {
        const std::int32_t root = order.queue[i / Lanes];
        if (i % Lanes == 0 && group.lane == 0) {
            order.state[root] = coarse;
        }
        for (std::int64_t k = edges.row_ptr[root] + static_cast<int>(i % Lanes); k < edges.row_ptr[root + 1];
             k += Lanes) {
            if (edges.strong[k] != matrix::mark::strong) {
                continue;
            }
            const std::int32_t middle = edges.columns[k];
            if (group.lane == 0) {
                order.close(middle);
            }
            for (std::int64_t at = edges.row_ptr[middle] + group.lane; at < edges.row_ptr[middle + 1]; at += Lanes) {
                if (edges.strong[at] == matrix::mark::strong && edges.columns[at] != root) {
                    order.close(edges.columns[at]);
                }
            }
        }
    }
    if (order.is_last_block()) {
        order.bounds->begin = end;
        order.bounds->closed_begin = order.bounds->closed_end;
        order.bounds->closed_end = atomicAdd(&order.bounds->closed_length, 0ULL);
        order.bounds->done = 0;
    }
}

/// Of a row and its neighbours, the first after row `last` that is open; -1: none.
template <int Lanes>
__device__ std::int32_t next_open(const Order& order, const Group<Lanes>& group, std::int32_t row, std::int32_t last)
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
        if (at + group.lane < end && edges.strong[at + group.lane] == matrix::mark::strong) {
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

/// Where a row that was closed was the first that is open, another one is now: a group each.
template <int Lanes>
__global__ void __launch_bounds__(threads) advance_kernel(Order order)
{
    const Edges& edges = order.edges;
    const Group<Lanes> group;
    const auto advance = [&](std::int32_t middle, std::int32_t row) {
        const std::int32_t next = next_open(order, group, middle, row);
        if (group.lane == 0) {
            order.first[middle] = next;
            if (next >= 0) {
                order.allow(next);
            }
        }
    };
    const unsigned long long end = order.bounds->closed_end;
    for (unsigned long long i = order.bounds->closed_begin + group.number; i < end; i += group.count) {
        const std::int32_t row = order.queue[order.rows - 1 - static_cast<std::int64_t>(i)];
        if (order.first[row] == row) {
            advance(row, row);
        }
        for (std::int64_t k = edges.row_ptr[row]; k < edges.row_ptr[row + 1]; k += Lanes) {
            std::int32_t middle = -1;
            if (k + group.lane < edges.row_ptr[row + 1] && edges.strong[k + group.lane] == matrix::mark::strong) {
                middle = edges.columns[k + group.lane];
            }
            unsigned lanes = group.ballot(middle >= 0 && order.first[middle] == row);
            for (; lanes != 0; lanes &= lanes - 1) {
                advance(group.of(lanes, middle), row);
            }
        }
    }
    if (order.is_last_block()) {
        order.bounds->end = atomicAdd(&order.bounds->length, 0ULL);
        order.bounds->done = 0;
    }
}

/// As many roots as there can be, three steps apart. Returns false where too many wait for each other, as along a line:
/// the host is faster. \param nnz  of the matrix
inline bool choose_roots(std::int64_t rows, std::int64_t nnz, const Edges& edges, std::uint8_t* state,
                         const Context& context)
{
    constexpr int rounds_between_looks = 32;
    constexpr int most_looks = 128;
    constexpr int blocks_each = 8;  // of a multiprocessor
    const auto n = static_cast<std::size_t>(rows);
    const DeviceArray<std::int32_t> missing(*context.memory, n);
    const DeviceArray<std::int32_t> first(*context.memory, n);
    const DeviceArray<std::int32_t> queue(*context.memory, n);
    const DeviceArray<Order::Bounds> bounds = zeros<Order::Bounds>(1, context);
    const Order order{edges, rows, missing.data(), first.data(), queue.data(), state, bounds.data()};
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
    for_each(1, context, [order] __device__(std::int64_t) { order.bounds->end = order.bounds->length; });
    const auto blocks = static_cast<unsigned>(blocks_each * std::max(context.compute_units, 1));
    const bool wide = nnz > 12 * rows;  // so that a row of mean length takes about one step
    const auto close = wide ? close_kernel<32> : close_kernel<8>;
    const auto advance = wide ? advance_kernel<32> : advance_kernel<8>;
    for (int look = 0; look < most_looks; ++look) {
        for (int round = 0; round < rounds_between_looks; ++round) {
            close<<<blocks, threads, 0, stream_of(context)>>>(order);
            RMSP_CUDA_CHECK_LAUNCH("close_kernel");
            advance<<<blocks, threads, 0, stream_of(context)>>>(order);
            RMSP_CUDA_CHECK_LAUNCH("advance_kernel");
        }
        const auto now = fetch(bounds.data(), context);
        if (now.begin == now.length) {
            return true;
        }
    }
    return false;
}

}  // namespace rmsp::kernels::cuda::coarsening
