#pragma once

#include <algorithm>

#include <cooperative_groups.h>
#include <kernels/steps/coarsening/aggregate_parts.cuh>
#include <kernels/steps/coarsening/points.cuh>

/// Roots are chosen in the order of the rows: a row becomes one unless a row before it, one or two steps away, is one.
/// It comes as soon as it is the first around itself and around each of its neighbours that is still open. Rows around
/// a root are closed at once, whatever is before them, so that decisions do not wait for each other along whole lines.
///
/// What other blocks, or other devices, write within the kernel is read past the first cache, which does not see it.
namespace rmsp::kernels::cuda::coarsening {

constexpr int root_threads = 512;
/// Blocks of a multiprocessor, where `lanes` threads look at a row. Of short rows a round is a chain of loads that wait
/// for each other: registers that are not spilled shorten it more than threads.
constexpr int root_blocks(int lanes) { return lanes == 32 ? 4 : 2; }

/// Of a kernel, or of all devices' kernels together.
template <int Most>
struct Order {
    const Parts<Most>& parts;
    const volatile std::uint64_t* given_up;  ///< AggregateParts::given_up
    std::uint64_t epoch;

    __device__ __forceinline__ const Part<Most>& own() const { return parts.own; }
    __device__ __forceinline__ const Part<Most>& of(std::int64_t row) const { return parts.of(row); }
    template <class X>
    __device__ static __forceinline__ X add(X* to, X x)
    {
        return Most == 1 ? atomicAdd(to, x) : atomicAdd_system(to, x);
    }
    __device__ __forceinline__ bool is_open(std::int64_t row) const
    {
        const Part<Most>& there = of(row);
        return __ldcg(there.at(there.missing, row)) >= 0;
    }
    /// Returns whether it was open.
    __device__ __forceinline__ bool close(std::int64_t row) const
    {
        const Part<Most>& there = of(row);
        std::int32_t* const missing = there.at(there.missing, row);
        // A look first saves what goes over links; on one device it is one more wait for the memory.
        return Most == 1 ? atomicExch(missing, -1) >= 0 : __ldcg(missing) >= 0 && atomicExch_system(missing, -1) >= 0;
    }
    /// `row` is the first that is open around one more. \param meeting  the next one
    __device__ __forceinline__ void allow(std::int32_t row, std::uint64_t meeting) const
    {
        const Part<Most>& there = of(row);
        if (add(there.at(there.missing, row), -1) == 1) {
            there.queue[add(&there.words->roots, 1ULL)] = row;
            if (Most > 1) {
                store_relaxed(&own().words->found, meeting);
            }
        }
    }
    __device__ __forceinline__ std::int32_t closed(unsigned long long i) const
    {
        return __ldcg(own().queue + (own().rows - 1 - static_cast<std::int64_t>(i)));
    }
    __device__ static __forceinline__ void set_closed(const Part<Most>& there, unsigned long long i, std::int32_t row)
    {
        there.queue[there.rows - 1 - static_cast<std::int64_t>(i)] = row;
    }
};

constexpr std::uint64_t given_up_meeting = ~std::uint64_t{0};
/// Waits until a device has told of that meeting, and returns what; given_up_meeting where it never will.
__device__ __forceinline__ std::uint64_t wait_for(const std::uint64_t* told, std::uint64_t meeting,
                                                  const volatile std::uint64_t* given_up, std::uint64_t epoch)
{
    // The look at the host's memory takes about as long as a thousand at the word.
    constexpr unsigned looks_between = 1U << 12U;
    std::uint64_t value = load_relaxed(told);
    for (unsigned looks = 1; value < 2 * meeting; ++looks) {
        if (looks % looks_between == 0 && *given_up >= epoch) {
            return given_up_meeting;
        }
        value = load_relaxed(told);
    }
    return value;
}

enum class Met : std::uint8_t { nothing, found, gave_up };
/// All blocks of all devices meet, for the `meeting`-th time, and see what each has written. Returns whether one of
/// them has found a root since the last time; gave_up where a device failed, on all of them.
template <int Most>
__device__ Met meet(const Order<Most>& order, std::uint64_t meeting)
{
    static_assert(most_aggregate_parts <= 32);
    constexpr unsigned warp = ~0U;
    __shared__ std::uint64_t told;
    __syncthreads();
    if (threadIdx.x < 32) {
        RootWords* const words = order.own().words;
        bool last = false;
        if (threadIdx.x == 0) {
            // For the device: the block that comes last has a fence for all devices, which takes some microseconds.
            __threadfence();
            last = atomicAdd(&words->arrived, 1ULL) + 1 == gridDim.x * meeting;
        }
        if (__shfl_sync(warp, last ? 1 : 0, 0) != 0) {
            __threadfence_system();
            const auto device = static_cast<int>(threadIdx.x);
            const bool takes_part = device < order.parts.count;
            std::uint64_t value = 0;
            if (takes_part) {
                const bool found = load_relaxed(&words->found) == meeting;
                store_relaxed(&order.parts.part[device].words->told[meeting % 2][order.parts.own_number],
                              2 * meeting + (found ? 1 : 0));
                value = wait_for(&words->told[meeting % 2][device], meeting, order.given_up, order.epoch);
            }
            const bool gave_up = __any_sync(warp, value == given_up_meeting ? 1 : 0) != 0;
            const bool any = __any_sync(warp, static_cast<int>(value % 2)) != 0;
            if (threadIdx.x == 0) {
                __threadfence_system();
                store_relaxed(&words->go, gave_up ? given_up_meeting : 2 * meeting + (any ? 1 : 0));
            }
        }
        if (threadIdx.x == 0) {
            std::uint64_t value = 0;
            while ((value = load_relaxed(&words->go)) < 2 * meeting) {
                __nanosleep(20);
            }
            __threadfence();
            told = value;
        }
    }
    __syncthreads();
    return told == given_up_meeting ? Met::gave_up : told % 2 != 0 ? Met::found : Met::nothing;
}

/// `Lanes` threads of a warp that do something together; of all threads of a grid there are `count` such groups. Groups
/// of neighbouring numbers are in different blocks, so that a short list is work for all of them.
template <int Lanes>
struct LaneGroup {
    static constexpr int in_block = root_threads / Lanes;

    int lane = static_cast<int>(threadIdx.x) % Lanes;
    int in_own_block = static_cast<int>(threadIdx.x) / Lanes;
    unsigned long long number = static_cast<unsigned>(in_own_block) * std::uint64_t{gridDim.x} + blockIdx.x;
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
template <int Most>
__device__ __forceinline__ void close_row(const Order<Most>& order, BlockList& list, std::int32_t row)
{
    if (!order.close(row)) {
        return;
    }
    const Part<Most>& there = order.of(row);
    const bool own = Most == 1 || &there == &order.own();
    const int at = own ? atomicAdd(&list.size, 1) : BlockList::room;
    if (at < BlockList::room) {
        list.pairs[at].row = row;
    } else {
        order.set_closed(there, order.add(&there.words->closed, 1ULL), row);
    }
}

/// Closes what is around the roots from `begin` on: `Lanes` groups a root, each of which takes some of its neighbours.
/// Returns where the next roots will be.
template <int Lanes, int Most>
__device__ unsigned long long close_around(const Order<Most>& order, BlockList& list, unsigned long long begin)
{
    const Part<Most>& own = order.own();
    const LaneGroup<Lanes> group;
    unsigned long long i = begin * Lanes + group.number;
    // What may not be a root is read together with how many there are.
    std::int32_t root = i / Lanes < static_cast<unsigned long long>(own.rows) ? __ldcg(own.queue + i / Lanes) : 0;
    const unsigned long long end = __ldcg(&own.words->roots);
    while (i < end * Lanes) {
        if (i % Lanes == 0 && group.lane == 0) {
            *own.at(own.state, root) = coarse;
        }
        const Neighbours around = own.neighbours(root);
        for (auto k = static_cast<std::int32_t>(i % Lanes); k < around.size; k += Lanes) {
            const std::int32_t middle = around[k];
            if (middle < 0) {
                continue;
            }
            // The middle comes first, as if it were before its neighbours: so that no lane waits for it.
            const Neighbours behind = order.of(middle).neighbours(middle);
            for (std::int32_t at = group.lane - 1; at < behind.size; at += Lanes) {
                const std::int32_t row = at < 0 ? middle : behind[at];
                if (row >= 0 && row != root) {
                    close_row(order, list, row);
                }
            }
        }
        i += group.count;
        root = i < end * Lanes ? __ldcg(own.queue + i / Lanes) : 0;
    }
    // In the queue they are work for all blocks: which of them closed a row is no measure of how much they can do.
    __syncthreads();
    const int size = min(list.size, BlockList::room);
    if (threadIdx.x == 0 && size > 0) {
        list.place = order.add(&own.words->closed, static_cast<unsigned long long>(size));
    }
    __syncthreads();
    for (int k = static_cast<int>(threadIdx.x); k < size; k += root_threads) {
        order.set_closed(own, list.place + static_cast<unsigned>(k), list.pairs[k].row);
    }
    if (threadIdx.x == 0) {
        list.size = 0;
    }
    return end;
}

/// Of a row and its neighbours, the first after row `last` that is open; -1: none.
template <int Lanes, int Most>
__device__ std::int32_t next_open(const Order<Most>& order, const LaneGroup<Lanes>& group, std::int32_t row,
                                  std::int32_t last)
{
    constexpr std::int32_t few = 4 * Lanes;
    const Part<Most>& there = order.of(row);
    const Neighbours around = there.neighbours(row);
    std::int32_t at = 0;
    if (around.size > few) {
        const std::int64_t of_row = there.from_first(row);
        at = static_cast<std::int32_t>(there.edges.place(of_row, last + std::int64_t{1}) - there.edges.row_ptr[of_row]);
    }
    const std::int32_t itself = row > last && order.is_open(row) ? row : -1;
    for (; at < around.size; at += Lanes) {
        const std::int32_t column = at + group.lane < around.size ? around[at + group.lane] : -1;
        const unsigned lanes = group.ballot(column > last && order.is_open(column));
        if (lanes != 0) {
            const std::int32_t neighbour = group.of(lanes, column);
            return itself >= 0 && itself < neighbour ? itself : neighbour;
        }
    }
    return itself;
}

/// Around each pair's `middle` its `row` was the first that is open, until it was closed; another one is now.
template <int Lanes, int Most>
__device__ void advance_pairs(const Order<Most>& order, const BlockList& list, std::uint64_t meeting)
{
    const LaneGroup<Lanes> group;
    for (int i = group.in_own_block; i < list.size; i += LaneGroup<Lanes>::in_block) {
        const BlockList::Pair pair = list.pairs[i];
        const std::int32_t next = next_open(order, group, pair.middle, pair.row);
        if (group.lane == 0) {
            const Part<Most>& there = order.of(pair.middle);
            *there.at(there.first, pair.middle) = next;
            if (next >= 0) {
                order.allow(next, meeting);
            }
        }
    }
}

/// Where one of the closed rows from `begin` on was the first that is open, another one is now. Each group lists where,
/// and all groups of a block share what is listed: of some rows there is much, of most nothing. Returns where the next
/// closed rows will be.
template <int Lanes, int Most>
__device__ unsigned long long advance_closed(const Order<Most>& order, BlockList& list, unsigned long long begin,
                                             std::uint64_t meeting)
{
    const Part<Most>& own = order.own();
    const LaneGroup<Lanes> group;
    unsigned long long i = begin + group.number;
    // As with the roots: a closed row, if there are so many.
    std::int32_t next = i < static_cast<unsigned long long>(own.rows) ? order.closed(i) : -1;
    const unsigned long long end = __ldcg(&own.words->closed);
    std::int32_t row = -1;
    std::int32_t k = 0;
    Neighbours around{};
    const auto first_around = [&](std::int32_t middle) {
        const Part<Most>& there = order.of(middle);
        return __ldcg(there.at(there.first, middle));
    };
    const auto note = [&](std::int32_t middle) { list.pairs[atomicAdd(&list.size, 1)] = {middle, row}; };
    while (true) {
        // Of a row that comes now, its own place is read beside its neighbours'.
        std::int32_t around_itself = -1;
        if (row < 0 && i < end) {
            row = next;
            k = 0;
            around = own.neighbours(row);
            around_itself = group.lane == 0 ? first_around(row) : -1;
            i += group.count;
            next = i < end ? order.closed(i) : -1;
        }
        const bool works = row >= 0;
        if (works) {
            const std::int32_t middle = k + group.lane < around.size ? around[k + group.lane] : -1;
            if (middle >= 0 && first_around(middle) == row) {
                note(middle);
            }
            if (around_itself == row) {
                note(row);
            }
            k += Lanes;
            row = k < around.size ? row : -1;
        }
        const bool any = __syncthreads_or(works ? 1 : 0) != 0;
        // A step lists at most a pair a thread, and one a group.
        const bool full = list.size > BlockList::room - 2 * root_threads;
        __syncthreads();
        if (!any || full) {
            advance_pairs<Lanes>(order, list, meeting);
            __syncthreads();
            if (threadIdx.x == 0) {
                list.size = 0;
            }
            __syncthreads();
        }
        if (!any) {
            return end;
        }
    }
}

/// Rounds, of all blocks of all devices together: what is around the roots that are known is closed; where a closed row
/// was the first that is open, another one is, which may make it a root. Ends when there are no more, or after
/// `most_rounds`.
template <int Lanes, int Most>
__global__ void __launch_bounds__(root_threads, root_blocks(Lanes))
    roots_kernel(const __grid_constant__ Parts<Most> all, const volatile std::uint64_t* given_up, std::uint64_t epoch,
                 int most_rounds)
{
    __shared__ BlockList list;
    // Parts are asked for by number: parameters are not made for that.
    __shared__ std::uint64_t copy[Most == 1 ? 1 : sizeof(Parts<Most>) / sizeof(std::uint64_t)];
    if constexpr (Most > 1) {
        for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(sizeof copy / sizeof *copy);
             i += root_threads) {
            copy[i] = reinterpret_cast<const std::uint64_t*>(&all)[i];
        }
        __syncthreads();
    }
    const Order<Most> order{Most == 1 ? all : *reinterpret_cast<const Parts<Most>*>(copy), given_up, epoch};
    const Part<Most>& own = order.own();
    if (threadIdx.x == 0) {
        list.size = 0;
    }
    __syncthreads();
    const auto all_meet = [&](std::uint64_t meeting, unsigned long long known) {
        if constexpr (Most == 1) {
            cooperative_groups::this_grid().sync();
            return __ldcg(&own.words->roots) > known ? Met::found : Met::nothing;
        } else {
            return meet(order, meeting);
        }
    };
    unsigned long long begin = 0;
    unsigned long long closed_begin = 0;
    std::uint64_t meeting = 0;
    Met met = Met::found;
    for (int round = 0; round < most_rounds && met == Met::found; ++round) {
        begin = close_around<Lanes>(order, list, begin);
        if (all_meet(++meeting, begin) == Met::gave_up) {
            return;
        }
        ++meeting;
        closed_begin = advance_closed<Lanes>(order, list, closed_begin, meeting);
        met = all_meet(meeting, begin);
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        own.words->decided = begin;
    }
}

/// Roots from the queues of all devices, which meet before, on. Does not wait.
/// \returns false where blocks of this device cannot wait for each other
template <int Most>
bool launch_roots(Parts<Most> all, const AggregateParts& parts, const Context& context)
{
    constexpr int most_rounds = 4096;
    const AggregatePart& own = parts.part[parts.own];
    const int lanes = lanes_of_rows(own.rows, own.nnz);
    const void* const kernel = lanes == 32 ? reinterpret_cast<const void*>(roots_kernel<32, Most>)
                                           : reinterpret_cast<const void*>(roots_kernel<8, Most>);
    int device = 0;
    int cooperates = 0;
    int resident = 0;
    RMSP_CUDA_CHECK(cudaGetDevice(&device));
    RMSP_CUDA_CHECK(cudaDeviceGetAttribute(&cooperates, cudaDevAttrCooperativeLaunch, device));
    RMSP_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, root_threads, 0));
    const bool can = cooperates != 0 && resident != 0;
    if (Most > 1 ? parts.total(can ? 0 : 1) != 0 : !can) {
        return false;
    }
    const auto blocks = static_cast<unsigned>(std::clamp<std::int64_t>(
        blocks_for(own.rows, root_threads / 8), 1,
        std::int64_t{std::min(resident, root_blocks(lanes))} * std::max(context.compute_units, 1)));
    int rounds = most_rounds;
    const volatile std::uint64_t* given_up = parts.given_up;
    std::uint64_t epoch = parts.epoch;
    void* arguments[] = {&all, &given_up, &epoch, &rounds};
    // Kernels of several devices, which may share a GPU, are beside each other: no more blocks than have room at once.
    RMSP_CUDA_CHECK(
        Most == 1
            ? cudaLaunchCooperativeKernel(kernel, dim3(blocks), dim3(root_threads), arguments, 0, stream_of(context))
            : cudaLaunchKernel(kernel, dim3(blocks), dim3(root_threads), arguments, 0, stream_of(context)));
    return true;
}

}  // namespace rmsp::kernels::cuda::coarsening
