#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <kernels/steps/coarsening/rows.cuh>

/// Groups of threads that look at entries of one row, and the entries that interpolation looks at most.
namespace rmsp::kernels::cuda::coarsening {

inline constexpr int group = 8;            ///< threads of a row
inline constexpr int group_threads = 128;  ///< of a block
inline constexpr int groups = group_threads / group;

/// The place of the calling thread among those of its row, who call everything here together.
struct Group {
    int lane = static_cast<int>(threadIdx.x) % group;
    int first = static_cast<int>(threadIdx.x) % 32 / group * group;  ///< thread of the warp
    unsigned mask = ((1U << group) - 1) << first;

    __device__ void sync() const { __syncwarp(mask); }
    /// Of the group's threads, those where it is so: bit i is thread i's.
    __device__ unsigned where(bool so) const { return (__ballot_sync(mask, so ? 1 : 0) & mask) >> first; }
    template <class X>
    __device__ X from(int thread, X value) const
    {
        return __shfl_sync(mask, value, first + thread);
    }
    template <class X>
    __device__ X across(int distance, X value) const
    {
        return __shfl_xor_sync(mask, value, distance);
    }
};

/// Of the rows that are no coarse points, the entries in coarse points that count: that are strong, or whose sign is
/// not the diagonal's. Rows are looked at from each of their neighbours, and on coarser levels few of their entries
/// count.
struct CoarseEntries {
    const std::int64_t* row_ptr;
    const std::int32_t* point;
    const double* value;
    const std::uint8_t* kind;  ///< of the two below, those that hold

    static constexpr std::uint8_t strong = 1;
    static constexpr std::uint8_t opposite = 2;
};

/// Blocks for so many rows, each by a group.
inline unsigned group_blocks(std::int64_t rows, const Context& context)
{
    constexpr std::int64_t blocks_each = 64;  // of a multiprocessor, so that the last ones end together
    return static_cast<unsigned>(
        std::clamp<std::int64_t>((rows + groups - 1) / groups, 1, blocks_each * std::max(context.compute_units, 1)));
}

/// Counts such entries (Fill = false), or writes them where row_ptr says.
template <bool Fill, class Source>
__global__ void __launch_bounds__(group_threads)
    coarse_entries_kernel(Source a, std::int64_t rows, std::int32_t* count, const std::int64_t* row_ptr,
                          std::int32_t* points, double* values, std::uint8_t* kinds)
{
    const Group threads_of;
    const std::int64_t step = std::int64_t{gridDim.x} * groups;
    for (std::int64_t row = std::int64_t{blockIdx.x} * groups + static_cast<int>(threadIdx.x) / group; row < rows;
         row += step) {
        std::int32_t found = 0;
        if (a.number[row] < 0) {
            const double own = a.diagonal[row];
            const std::int64_t end = a.row_ptr[row + 1];
            for (std::int64_t first = a.row_ptr[row]; first < end; first += group) {
                const std::int64_t k = first + threads_of.lane;
                std::int32_t point = -1;
                double value = 0;
                std::uint8_t kind = 0;
                if (k < end) {
                    point = a.number[a.col_idx[k]];
                    value = a.value(k);
                    kind = (a.strong[k] != 0 ? CoarseEntries::strong : 0) |
                           ((value < 0) != (own < 0) ? CoarseEntries::opposite : 0);
                }
                const bool counts = point >= 0 && kind != 0;
                const unsigned all = threads_of.where(counts);
                if (Fill && counts) {
                    const std::int64_t to = row_ptr[row] + found + __popc(all & ((1U << threads_of.lane) - 1));
                    points[to] = point;
                    values[to] = value;
                    kinds[to] = kind;
                }
                found += __popc(all);
            }
        }
        if (!Fill && threads_of.lane == 0) {
            count[row] = found;
        }
    }
}

/// The memory of CoarseEntries.
struct OwnedCoarseEntries {
    template <class Source>
    OwnedCoarseEntries(const Source& a, std::int64_t rows, const Context& context)
    {
        const unsigned blocks = group_blocks(rows, context);
        const DeviceArray<std::int32_t> count(*context.memory, static_cast<std::size_t>(rows));
        coarse_entries_kernel<false><<<blocks, group_threads, 0, stream_of(context)>>>(a, rows, count.data(), nullptr,
                                                                                       nullptr, nullptr, nullptr);
        RMSP_CUDA_CHECK_LAUNCH("coarse_entries_kernel");
        row_ptr = sums_before(count.data(), rows, context);
        const auto entries = static_cast<std::size_t>(fetch(row_ptr.data() + rows, context));
        point = DeviceArray<std::int32_t>(*context.memory, entries);
        value = DeviceArray<double>(*context.memory, entries);
        kind = DeviceArray<std::uint8_t>(*context.memory, entries);
        coarse_entries_kernel<true><<<blocks, group_threads, 0, stream_of(context)>>>(
            a, rows, nullptr, row_ptr.data(), point.data(), value.data(), kind.data());
        RMSP_CUDA_CHECK_LAUNCH("coarse_entries_kernel");
    }
    CoarseEntries view() const { return {row_ptr.data(), point.data(), value.data(), kind.data()}; }

    DeviceArray<std::int64_t> row_ptr;
    DeviceArray<std::int32_t> point;
    DeviceArray<double> value;
    DeviceArray<std::uint8_t> kind;
};

}  // namespace rmsp::kernels::cuda::coarsening
