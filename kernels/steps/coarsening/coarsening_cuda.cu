#include <algorithm>
#include <cmath>
#include <utility>

#include <kernels/steps/coarsening/roots.cuh>

namespace rmsp::kernels {
namespace cuda::coarsening {
namespace {

/// Bits that look random and depend on a row's number alone (splitmix64).
__device__ __forceinline__ std::uint64_t hashed(std::int64_t row)
{
    std::uint64_t bits = (static_cast<std::uint64_t>(row) + 1) * 0x9e3779b97f4a7c15U;
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31U);
}

std::int64_t entries_of(std::int64_t rows, IndexView row_ptr, const Context& context)
{
    return row_ptr.visit([&](const auto* p) { return static_cast<std::int64_t>(fetch(p + rows, context)); });
}

bool symmetrise(std::int64_t rows, IndexView row_ptr, const std::int32_t* col_idx, const std::uint8_t* strong,
                std::uint8_t* alike, const Context& context)
{
    const DeviceArray<std::uint64_t> differences(*context.memory, static_cast<std::size_t>(rows));
    const Edges edges{RowPointers(row_ptr), col_idx, strong};
    const std::int64_t nnz = entries_of(rows, row_ptr, context);
    // Each edge counts with its bits, its reverse against them: they cancel where all have one. That anything else sums
    // to zero is as likely as that 64 random bits are all zero.
    for_each_row(rows, nnz, context,
                 [edges, alike, differences = differences.data()] __device__(std::int64_t row, int lane, int lanes) {
                     std::uint64_t own = 0;
                     for (std::int64_t k = edges.row_ptr[row] + lane; k < edges.row_ptr[row + 1]; k += lanes) {
                         const bool is_edge = edges.strong[k] == matrix::mark::strong;
                         alike[k] = is_edge ? matrix::mark::strong : matrix::mark::weak;
                         if (is_edge) {
                             const std::int64_t other = edges.columns[k];
                             own += hashed(row << 32U | other) - hashed(other << 32U | row);
                         }
                     }
                     own = over_lanes(own, lanes, [](std::uint64_t x, std::uint64_t y) { return x + y; });
                     if (lane == 0) {
                         differences[row] = own;
                     }
                 });
    if (rows == 0 || sum_of(differences.data(), rows, context) == 0) {
        return true;
    }
    const DeviceArray<int> bad = zeros<int>(1, context);
    for_each_row(rows, nnz, context,
                 [edges, alike, bad = bad.data()] __device__(std::int64_t row, int lane, int lanes) {
                     for (std::int64_t k = edges.row_ptr[row] + lane; k < edges.row_ptr[row + 1]; k += lanes) {
                         if (edges.strong[k] != matrix::mark::strong) {
                             continue;
                         }
                         const std::int32_t other = edges.columns[k];
                         const std::int64_t at = edges.place(other, row);
                         if (at >= edges.row_ptr[other + 1] || edges.columns[at] != row) {
                             *bad = 1;
                         } else if (edges.strong[at] != matrix::mark::strong) {
                             alike[at] = matrix::mark::strong;
                         }
                     }
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

std::int64_t aggregates(std::int64_t rows, IndexView row_ptr, const std::int32_t* col_idx, const std::uint8_t* strong,
                        std::int32_t* number, const Context& context)
{
    const auto n = static_cast<std::size_t>(rows);
    const DeviceArray<std::uint8_t> state(*context.memory, n);
    const Edges edges{RowPointers(row_ptr), col_idx, strong};
    const std::int64_t nnz = entries_of(rows, row_ptr, context);
    if (!choose_roots(rows, nnz, edges, state.data(), context)) {
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
    for_each_row(
        rows, nnz, context, [edges, joined = joined.data(), number] __device__(std::int64_t row, int lane, int lanes) {
            if (joined[row] >= 0) {
                number[row] = joined[row];
                return;
            }
            // Votes, and below them what is larger the sooner the candidate comes.
            std::uint64_t best = 0;
            for (std::int64_t k = edges.row_ptr[row] + lane; k < edges.row_ptr[row + 1]; k += lanes) {
                const std::int32_t candidate = edges.strong[k] == matrix::mark::strong ? joined[edges.columns[k]] : -1;
                if (candidate >= 0) {
                    std::uint64_t votes = 0;
                    edges.from(row, [&](std::int32_t another) {
                        votes += joined[another] == candidate ? 1 : 0;
                        return true;
                    });
                    const std::uint64_t vote = votes << 32U | static_cast<std::uint32_t>(~candidate);
                    best = vote > best ? vote : best;
                }
            }
            best = over_lanes(best, lanes, [](std::uint64_t x, std::uint64_t y) { return x > y ? x : y; });
            if (lane == 0) {
                number[row] = best == 0 ? -1 : static_cast<std::int32_t>(~static_cast<std::uint32_t>(best));
            }
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
    int bits = 1;
    while (count >> bits != 0) {
        ++bits;
    }
    sort_pairs(keys.data(), sorted.data(), places.data(), members.data(), rows, bits, context);
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
    out.nnz = entries_of(rows, row_ptr, context);
    const LengthSums found = fetch(sums.data(), context);
    const auto n = static_cast<double>(rows);
    out.empty_rows = static_cast<std::int64_t>(found.empty);
    out.longest_row = static_cast<std::int64_t>(found.longest);
    out.mean = static_cast<double>(out.nnz) / n;
    out.deviation = std::sqrt(std::max(0.0, static_cast<double>(found.squares) / n - out.mean * out.mean));
    return out;
}

void sample_pointers(std::int64_t rows, IndexView pointers, std::int64_t step, std::int64_t count, std::int64_t* out,
                     const Context& context)
{
    for_each(count, context, [rows, row_ptr = RowPointers(pointers), step, out] __device__(std::int64_t i) {
        out[i] = row_ptr[i * step < rows ? i * step : rows];
    });
}

void rough_vector(std::int64_t first_row, std::int64_t rows, double* v, const Context& context)
{
    for_each(rows, context, [first_row, v] __device__(std::int64_t i) {
        const std::uint64_t bits = (static_cast<std::uint64_t>(first_row + i) + 1) * 0x9e3779b97f4a7c15U;
        v[first_row + i] = static_cast<double>(bits >> 11U) * 0x1p-52 - 1;
    });
}

}  // namespace
}  // namespace cuda::coarsening

RMSP_ROW(Coarsenings, cuda, .symmetrise = cuda::coarsening::symmetrise, .pmis = cuda::coarsening::pmis,
         .aggregates = cuda::coarsening::aggregates, .normalise = cuda::coarsening::normalise,
         .statistics_of_rows = cuda::coarsening::statistics_of_rows,
         .sample_pointers = cuda::coarsening::sample_pointers, .rough_vector = cuda::coarsening::rough_vector)

}  // namespace rmsp::kernels
