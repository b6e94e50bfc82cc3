#include <algorithm>
#include <cmath>
#include <utility>

#include <kernels/steps/coarsening/edges.cuh>
#include <kernels/steps/coarsening/points.cuh>

namespace rmsp::kernels {
namespace cuda::coarsening {
namespace {

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
    return give_numbers(rows, state.data(), number, context);
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

void lengths_of_ones(std::int64_t rows, const std::int32_t* number, std::int64_t count, double* coarse,
                     const Context& context)
{
    const DeviceArray<std::int32_t> members = zeros<std::int32_t>(count, context);
    for_each(rows, context, [number, members = members.data()] __device__(std::int64_t row) {
        if (number[row] >= 0) {
            atomicAdd(members + number[row], 1);
        }
    });
    for_each(count, context, [members = members.data(), coarse] __device__(std::int64_t aggregate) {
        coarse[aggregate] = sqrt(static_cast<double>(members[aggregate]));
    });
}

void normalised_ones(std::int64_t rows, const std::int32_t* number, const double* coarse, double* values,
                     const Context& context)
{
    for_each(rows, context, [number, coarse, values] __device__(std::int64_t row) {
        values[row] = number[row] < 0 ? 0.0 : 1.0 / coarse[number[row]];
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

std::int64_t entries_of(std::int64_t rows, IndexView row_ptr, const Context& context)
{
    return row_ptr.visit([&](const auto* p) { return static_cast<std::int64_t>(fetch(p + rows, context)); });
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

RMSP_ROW(Coarsenings, cuda, .pmis = cuda::coarsening::pmis, .normalise = cuda::coarsening::normalise,
         .lengths_of_ones = cuda::coarsening::lengths_of_ones, .normalised_ones = cuda::coarsening::normalised_ones,
         .statistics_of_rows = cuda::coarsening::statistics_of_rows,
         .sample_pointers = cuda::coarsening::sample_pointers, .rough_vector = cuda::coarsening::rough_vector)

}  // namespace rmsp::kernels
