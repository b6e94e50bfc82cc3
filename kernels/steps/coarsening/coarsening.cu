#include <algorithm>
#include <cmath>
#include <utility>

#include <cub/device/device_radix_sort.cuh>
#include <kernels/steps/coarsening/rows.cuh>

#include "matrix/strength.hpp"

namespace rmsp::kernels {
namespace cuda::coarsening {
namespace {

enum State : std::uint8_t { undecided, fine, coarse };

/// Bits that look random and depend on a row's number alone (splitmix64).
__device__ __forceinline__ std::uint64_t hashed(std::int64_t row)
{
    std::uint64_t bits = (static_cast<std::uint64_t>(row) + 1) * 0x9e3779b97f4a7c15U;
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31U);
}

/// The strong entries of a matrix.
struct Edges {
    RowPointers row_ptr;
    const std::int32_t* columns;
    const std::uint8_t* strong;

    /// f(column) for each; ends where f returns false.
    template <class F>
    __device__ __forceinline__ void from(std::int64_t row, const F& f) const
    {
        for (std::int64_t k = row_ptr[row]; k < row_ptr[row + 1]; ++k) {
            if (strong[k] == matrix::mark::strong && !f(columns[k])) {
                return;
            }
        }
    }
    /// The place of the first column that is not before `column`.
    __device__ __forceinline__ std::int64_t place(std::int64_t row, std::int64_t column) const
    {
        std::int64_t begin = row_ptr[row];
        std::int64_t end = row_ptr[row + 1];
        while (begin < end) {
            const std::int64_t middle = begin + (end - begin) / 2;
            if (columns[middle] < column) {
                begin = middle + 1;
            } else {
                end = middle;
            }
        }
        return begin;
    }
    __device__ __forceinline__ bool has(std::int64_t row, std::int32_t column) const
    {
        const std::int64_t at = place(row, column);
        return at < row_ptr[row + 1] && columns[at] == column && strong[at] == matrix::mark::strong;
    }
    /// Of a row and its neighbours, the first that is after row `last`; -1: none.
    __device__ __forceinline__ std::int64_t next(std::int64_t row, std::int64_t last) const
    {
        const std::int64_t end = row_ptr[row + 1];
        std::int64_t at = place(row, last + 1);
        while (at < end && strong[at] != matrix::mark::strong) {
            ++at;
        }
        const std::int64_t neighbour = at < end ? columns[at] : -1;
        return row > last && (neighbour < 0 || row < neighbour) ? row : neighbour;
    }
};

bool is_symmetric(std::int64_t rows, IndexView row_ptr, const std::int32_t* col_idx, const std::uint8_t* strong,
                  const Context& context)
{
    const DeviceArray<int> bad = zeros<int>(1, context);
    const Edges edges{RowPointers(row_ptr), col_idx, strong};
    for_each(rows, context, [edges, bad = bad.data()] __device__(std::int64_t row) {
        edges.from(row, [&](std::int32_t other) {
            if (!edges.has(other, static_cast<std::int32_t>(row))) {
                *bad = 1;
                return false;
            }
            return true;
        });
    });
    return fetch(bad.data(), context) == 0;
}

/// Gives coarse rows numbers in the order of the rows, and -1 to the others. Returns how many there are.
std::int64_t give_numbers(const DeviceArray<std::uint8_t>& state, std::int32_t* number, const Context& context)
{
    const auto rows = static_cast<std::int64_t>(state.size());
    for_each(rows, context, [state = state.data(), number] __device__(std::int64_t row) {
        number[row] = state[row] == coarse ? 1 : 0;
    });
    const DeviceArray<std::int64_t> before = sums_before(number, rows, context);
    for_each(rows, context, [before = before.data(), number] __device__(std::int64_t row) {
        number[row] = number[row] != 0 ? static_cast<std::int32_t>(before[row]) : -1;
    });
    return fetch(before.data() + rows, context);
}

std::int64_t pmis(std::int64_t rows, IndexView row_ptr, const std::int32_t* col_idx, const std::uint8_t* strong,
                  std::int32_t* number, const Context& context)
{
    const DeviceArray<std::int32_t> needed_by = zeros<std::int32_t>(rows, context);
    const DeviceArray<std::uint8_t> state(*context.memory, static_cast<std::size_t>(rows));
    const DeviceArray<std::uint8_t> blocked(*context.memory, static_cast<std::size_t>(rows));
    const DeviceArray<int> open(*context.memory, 1);
    const Edges edges{RowPointers(row_ptr), col_idx, strong};
    for_each(rows, context, [edges, needed_by = needed_by.data()] __device__(std::int64_t row) {
        edges.from(row, [&](std::int32_t other) {
            atomicAdd(needed_by + other, 1);
            return true;
        });
    });
    for_each(
        rows, context,
        [needed_by = needed_by.data(), state = state.data(), blocked = blocked.data()] __device__(std::int64_t row) {
            state[row] = needed_by[row] == 0 ? fine : undecided;
            blocked[row] = 0;
        });
    int left = rows > 0 ? 1 : 0;
    while (left != 0) {
        // Of two open rows with an edge between them, whichever way it goes, one stands in the other's way.
        for_each(rows, context,
                 [edges, needed_by = needed_by.data(), state = state.data(),
                  blocked = blocked.data()] __device__(std::int64_t row) {
                     if (state[row] != undecided) {
                         return;
                     }
                     const std::int32_t own = needed_by[row];
                     edges.from(row, [&](std::int32_t other) {
                         if (state[other] == undecided) {
                             const std::int32_t its = needed_by[other];
                             const std::uint64_t own_bits = own == its ? hashed(row) : 0;
                             const std::uint64_t its_bits = own == its ? hashed(other) : 0;
                             const bool before = own != its             ? own > its
                                                 : own_bits != its_bits ? own_bits > its_bits
                                                                        : row > other;
                             blocked[before ? other : row] = 1;
                         }
                         return true;
                     });
                 });
        for_each(rows, context, [state = state.data(), blocked = blocked.data()] __device__(std::int64_t row) {
            if (state[row] == undecided && blocked[row] == 0) {
                state[row] = coarse;
            }
            blocked[row] = 0;
        });
        RMSP_CUDA_CHECK(cudaMemsetAsync(open.data(), 0, sizeof(int), stream_of(context)));
        for_each(rows, context, [edges, state = state.data(), open = open.data()] __device__(std::int64_t row) {
            if (state[row] != undecided) {
                return;
            }
            bool depends = false;
            edges.from(row, [&](std::int32_t other) {
                depends = state[other] == coarse;
                return !depends;
            });
            if (depends) {
                state[row] = fine;
            } else {
                *open = 1;
            }
        });
        left = fetch(open.data(), context);
    }
    return give_numbers(state, number, context);
}

/// Rows in the order in which roots are chosen: one comes when all before it that are at most two steps away have been
/// decided, so that those that come at once are farther from each other.
struct Order {
    Edges edges;
    std::int32_t* missing;  ///< of each row: itself and its neighbours, as far as there is an undecided row before it
                            ///< around them
    std::int32_t* queue;    ///< the rows that came, each once
    std::uint8_t* taken;    ///< of each row: it or a neighbour is a root
    std::uint8_t* state;
    std::int64_t* bounds;  ///< of the queue: where those that come now begin and end; its length

    __device__ __forceinline__ void append(std::int64_t row) const
    {
        auto* const length = reinterpret_cast<unsigned long long*>(bounds + 2);
        queue[atomicAdd(length, 1ULL)] = static_cast<std::int32_t>(row);
    }
    __device__ __forceinline__ void decide(std::int64_t row) const
    {
        bool free = taken[row] == 0;
        edges.from(row, [&](std::int32_t other) {
            free = free && taken[other] == 0;
            return free;
        });
        if (free) {
            state[row] = coarse;
            taken[row] = 1;
        }
        allow_next(row, row);
        edges.from(row, [&](std::int32_t other) {
            if (free) {
                taken[other] = 1;
            }
            allow_next(other, row);
            return true;
        });
    }
    /// Around `middle`, `row` has been decided.
    __device__ __forceinline__ void allow_next(std::int64_t middle, std::int64_t row) const
    {
        const std::int64_t other = edges.next(middle, row);
        if (other >= 0 && atomicSub(missing + other, 1) == 1) {
            append(other);
        }
    }
};

__global__ void __launch_bounds__(threads) decide_kernel(Order order)
{
    const std::int64_t end = order.bounds[1];
    for (std::int64_t i = order.bounds[0] + std::int64_t{blockIdx.x} * threads + threadIdx.x; i < end;
         i += std::int64_t{gridDim.x} * threads) {
        order.decide(order.queue[i]);
    }
}

/// As many roots as there can be, three steps apart, in the order of the rows. Returns false where too many rows wait
/// for each other, as along a line: the host is faster.
bool choose_roots(std::int64_t rows, const Edges& edges, std::uint8_t* state, const Context& context)
{
    constexpr int rounds_between_looks = 32;
    constexpr int most_looks = 512;
    constexpr unsigned blocks = 512;
    const DeviceArray<std::int32_t> missing(*context.memory, static_cast<std::size_t>(rows));
    const DeviceArray<std::int32_t> queue(*context.memory, static_cast<std::size_t>(rows));
    const DeviceArray<std::uint8_t> taken = zeros<std::uint8_t>(rows, context);
    const DeviceArray<std::int64_t> bounds = zeros<std::int64_t>(3, context);
    const Order order{edges, missing.data(), queue.data(), taken.data(), state, bounds.data()};
    for_each(rows, context, [order] __device__(std::int64_t row) {
        std::int32_t neighbours = 0;
        order.edges.from(row, [&](std::int32_t) {
            ++neighbours;
            return true;
        });
        order.state[row] = fine;
        // A row without neighbours never comes.
        order.missing[row] = neighbours == 0 ? -1 : neighbours + 1;
    });
    for_each(rows, context, [order] __device__(std::int64_t row) {
        if (order.missing[row] != -1) {
            order.allow_next(row, -1);
        }
    });
    for (int look = 0; look < most_looks; ++look) {
        for (int round = 0; round < rounds_between_looks; ++round) {
            for_each(1, context, [order] __device__(std::int64_t) {
                order.bounds[0] = order.bounds[1];
                order.bounds[1] = order.bounds[2];
            });
            decide_kernel<<<blocks, threads, 0, stream_of(context)>>>(order);
            RMSP_CUDA_CHECK_LAUNCH("decide_kernel");
        }
        // What comes now is what a round found; none of it: all have come.
        if (fetch(bounds.data() + 1, context) == fetch(bounds.data() + 2, context)) {
            return true;
        }
    }
    return false;
}

std::int64_t aggregates(std::int64_t rows, IndexView row_ptr, const std::int32_t* col_idx, const std::uint8_t* strong,
                        std::int32_t* number, const Context& context)
{
    const auto n = static_cast<std::size_t>(rows);
    const DeviceArray<std::uint8_t> state(*context.memory, n);
    const Edges edges{RowPointers(row_ptr), col_idx, strong};
    if (!choose_roots(rows, edges, state.data(), context)) {
        return -1;
    }
    const DeviceArray<std::int32_t> joined(*context.memory, n);
    const std::int64_t count = give_numbers(state, number, context);
    // Neighbours of a root have no other one: roots are three steps apart.
    for_each(rows, context, [edges, state = state.data(), number, joined = joined.data()] __device__(std::int64_t row) {
        std::int32_t own = number[row];
        if (own < 0) {
            edges.from(row, [&](std::int32_t other) {
                own = state[other] == coarse ? number[other] : own;
                return own < 0;
            });
        }
        joined[row] = own;
    });
    // The rest joins the aggregate that most of its neighbours are in, of several the first.
    for_each(rows, context, [edges, joined = joined.data(), number] __device__(std::int64_t row) {
        std::int32_t best = joined[row];
        if (best < 0) {
            int most = 0;
            edges.from(row, [&](std::int32_t other) {
                const std::int32_t candidate = joined[other];
                if (candidate >= 0) {
                    int votes = 0;
                    edges.from(row, [&](std::int32_t another) {
                        votes += joined[another] == candidate ? 1 : 0;
                        return true;
                    });
                    if (votes > most || (votes == most && candidate < best)) {
                        most = votes;
                        best = candidate;
                    }
                }
                return true;
            });
        }
        number[row] = best;
    });
    return count;
}

void normalise(std::int64_t rows, const std::int32_t* number, std::int64_t count, double* values, double* coarse_values,
               const Context& context)
{
    const auto n = static_cast<std::size_t>(rows);
    if (rows == 0) {
        return;
    }
    // Rows by aggregate, each aggregate's in their order, so that sums are those of the host; those of none last.
    const DeviceArray<std::uint32_t> keys(*context.memory, n);
    const DeviceArray<std::uint32_t> sorted(*context.memory, n);
    const DeviceArray<std::int32_t> places(*context.memory, n);
    const DeviceArray<std::int32_t> members(*context.memory, n);
    for_each(rows, context,
             [number, count, keys = keys.data(), places = places.data(), values] __device__(std::int64_t row) {
                 keys[row] = static_cast<std::uint32_t>(number[row] < 0 ? count : number[row]);
                 places[row] = static_cast<std::int32_t>(row);
                 values[row] = number[row] < 0 ? 0.0 : values[row];
             });
    std::size_t bytes = 0;
    int bits = 1;
    while (count >> bits != 0) {
        ++bits;
    }
    RMSP_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys.data(), sorted.data(), places.data(),
                                                    members.data(), rows, 0, bits, stream_of(context)));
    const DeviceArray<std::byte> workspace(*context.memory, bytes);
    RMSP_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(workspace.data(), bytes, keys.data(), sorted.data(), places.data(),
                                                    members.data(), rows, 0, bits, stream_of(context)));
    const DeviceArray<std::int32_t> first(*context.memory, static_cast<std::size_t>(count) + 1);
    for_each(count + 1, context, [rows, sorted = sorted.data(), first = first.data()] __device__(std::int64_t key) {
        std::int64_t begin = 0;
        std::int64_t end = rows;
        while (begin < end) {
            const std::int64_t middle = begin + (end - begin) / 2;
            if (sorted[middle] < key) {
                begin = middle + 1;
            } else {
                end = middle;
            }
        }
        first[key] = static_cast<std::int32_t>(begin);
    });
    for_each(
        count, context,
        [first = first.data(), members = members.data(), values, coarse_values] __device__(std::int64_t aggregate) {
            double sum = 0;
            for (std::int32_t m = first[aggregate]; m < first[aggregate + 1]; ++m) {
                const double value = values[members[m]];
                sum = __dadd_rn(sum, __dmul_rn(value, value));
            }
            const double norm = sqrt(sum);
            const bool good = norm > 0;
            coarse_values[aggregate] = good ? norm : 0.0;
            for (std::int32_t m = first[aggregate]; m < first[aggregate + 1]; ++m) {
                double& value = values[members[m]];
                value = good ? value / norm : 0.0;
            }
        });
}

/// Of rows' lengths.
struct LengthSums {
    unsigned long long empty;
    unsigned long long longest;
    unsigned long long squares;
};

__global__ void __launch_bounds__(threads) lengths_kernel(RowPointers row_ptr, std::int64_t rows, LengthSums* sums)
{
    LengthSums own{};
    const std::int64_t step = std::int64_t{gridDim.x} * threads;
    for (std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x; row < rows; row += step) {
        const auto length = static_cast<unsigned long long>(row_ptr[row + 1] - row_ptr[row]);
        own.empty += length == 0 ? 1 : 0;
        own.longest = length > own.longest ? length : own.longest;
        own.squares += length * length;
    }
    for (int distance = 16; distance > 0; distance /= 2) {
        own.empty += __shfl_down_sync(~0U, own.empty, distance);
        own.squares += __shfl_down_sync(~0U, own.squares, distance);
        const unsigned long long other = __shfl_down_sync(~0U, own.longest, distance);
        own.longest = other > own.longest ? other : own.longest;
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&sums->empty, own.empty);
        atomicAdd(&sums->squares, own.squares);
        atomicMax(&sums->longest, own.longest);
    }
}

RowStatistics statistics_of_rows(std::int64_t rows, IndexView row_ptr, const Context& context)
{
    RowStatistics out;
    out.rows = rows;
    if (rows == 0) {
        return out;
    }
    const DeviceArray<LengthSums> sums = zeros<LengthSums>(1, context);
    constexpr std::int64_t blocks_each = 8;  // of a multiprocessor
    const std::int64_t blocks =
        std::min<std::int64_t>(blocks_for(rows), blocks_each * std::max(context.compute_units, 1));
    lengths_kernel<<<static_cast<unsigned>(blocks), threads, 0, stream_of(context)>>>(RowPointers(row_ptr), rows,
                                                                                      sums.data());
    RMSP_CUDA_CHECK_LAUNCH("lengths_kernel");
    out.nnz = row_ptr.visit([&](const auto* p) { return static_cast<std::int64_t>(fetch(p + rows, context)); });
    const LengthSums found = fetch(sums.data(), context);
    const auto n = static_cast<double>(rows);
    out.empty_rows = static_cast<std::int64_t>(found.empty);
    out.longest_row = static_cast<std::int64_t>(found.longest);
    out.mean = static_cast<double>(out.nnz) / n;
    out.deviation = std::sqrt(std::max(0.0, static_cast<double>(found.squares) / n - out.mean * out.mean));
    return out;
}

}  // namespace
}  // namespace cuda::coarsening

const Coarsenings& Coarsenings::cuda()
{
    static constexpr Coarsenings row{.is_symmetric = cuda::coarsening::is_symmetric,
                                     .pmis = cuda::coarsening::pmis,
                                     .aggregates = cuda::coarsening::aggregates,
                                     .normalise = cuda::coarsening::normalise,
                                     .statistics_of_rows = cuda::coarsening::statistics_of_rows};
    return row;
}

}  // namespace rmsp::kernels
