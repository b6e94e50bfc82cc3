#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <kernels/cuda_shared.cuh>
#include <kernels/steps/coarsening/rows.cuh>
#include <kernels/steps/coarsening/thread_sum.hpp>
#include <matrix/interpolation_row.hpp>

/// Rows of a sparse matrix that are added up by a thread each.
namespace rmsp::kernels::cuda::coarsening {

/// \param columns, values  room of the sums; null: in shared memory
template <class F>
__global__ void __launch_bounds__(threads)
    row_sums_kernel(std::int64_t rows, const std::int32_t* __restrict__ most, std::int32_t above, std::int32_t upto,
                    std::int32_t* columns, double* values, F f)
{
    const std::int64_t thread = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    extern __shared__ double sum_room[];
    ThreadSum sum = columns != nullptr
                        ? ThreadSum(columns + thread, values + thread, stride)
                        : ThreadSum(reinterpret_cast<std::int32_t*>(sum_room + threads * upto) + threadIdx.x,
                                    sum_room + threadIdx.x, threads);
    for (std::int64_t row = thread; row < rows; row += stride) {
        if (most[row] > above && most[row] <= upto) {
            sum.clear();
            f(row, sum);
        }
    }
}

/// f(row, sum) for each row, of which most[row] says how many entries its sum may have, and `widest` the largest of
/// these. The few wide rows go by themselves, so that the others have more threads.
template <class F>
void for_row_sums(std::int64_t rows, const std::int32_t* most, std::int32_t widest, const Context& context, const F& f)
{
    constexpr std::int32_t narrowest = 32;  // whose room is in shared memory, 96 KiB a block at most
    constexpr std::int32_t narrow = 64;
    constexpr std::int64_t blocks_each = 4;                 // of a multiprocessor
    constexpr std::int64_t room = std::int64_t{256} << 20;  // bytes for all sums
    constexpr auto entry_bytes = static_cast<std::int64_t>(sizeof(std::int32_t) + sizeof(double));
    const auto launch = [&](std::int32_t above, std::int32_t upto) {
        const std::int64_t each = std::int64_t{threads} * std::max(upto, 1) * entry_bytes;
        if (upto <= narrowest) {
            const std::int64_t blocks =
                std::min<std::int64_t>(blocks_for(rows), 2 * blocks_each * std::max(context.compute_units, 1));
            allow_shared_bytes(reinterpret_cast<const void*>(row_sums_kernel<F>), static_cast<std::size_t>(each));
            row_sums_kernel<<<static_cast<unsigned>(blocks), threads, static_cast<std::size_t>(each),
                              stream_of(context)>>>(rows, most, above, upto, nullptr, nullptr, f);
            RMSP_CUDA_CHECK_LAUNCH("row_sums_kernel");
            return;
        }
        const std::int64_t blocks = std::clamp<std::int64_t>(
            std::min(room / each, blocks_each * std::max(context.compute_units, 1)), 1, blocks_for(rows));
        const auto entries = static_cast<std::size_t>(blocks * threads * std::max(upto, 1));
        const DeviceArray<std::int32_t> columns(*context.memory, entries);
        const DeviceArray<double> values(*context.memory, entries);
        row_sums_kernel<<<static_cast<unsigned>(blocks), threads, 0, stream_of(context)>>>(
            rows, most, above, upto, columns.data(), values.data(), f);
        RMSP_CUDA_CHECK_LAUNCH("row_sums_kernel");
    };
    if (rows > 0) {
        std::int32_t above = -1;
        for (const std::int32_t upto : {narrowest, narrow, widest}) {
            if (above < widest) {
                launch(above, std::min(widest, upto));
            }
            above = std::max(above, upto);
        }
    }
}

/// Computes a row and writes it to its room.
template <class T, class F>
struct WriteRow {
    F f;
    const std::int64_t* room;  ///< where each begins
    std::int32_t* columns;
    T* values;
    std::int32_t* count;

    __device__ void operator()(std::int64_t row, ThreadSum& sum) const
    {
        f(row, sum);
        for (std::int64_t i = 0; i < sum.size(); ++i) {
            columns[room[row] + i] = sum.column(i);
            values[room[row] + i] = static_cast<T>(sum.entry(i));
        }
        count[row] = static_cast<std::int32_t>(sum.size());
    }
};

/// Room for rows of so many entries each, in rows of a matrix.
template <class T>
CsrArrays<T> make_room(const std::int32_t* count, std::int64_t rows, const Context& context)
{
    CsrArrays<T> room;
    room.row_ptr = sums_before(count, rows, context);
    const auto entries = static_cast<std::size_t>(fetch(room.row_ptr.data() + rows, context));
    room.col_idx = DeviceArray<std::int32_t>(*context.memory, entries);
    room.values = DeviceArray<T>(*context.memory, entries);
    return room;
}

/// Rows without the room behind their `count` entries.
template <class T>
CsrArrays<T> packed(CsrArrays<T> room, const std::int32_t* count, std::int64_t rows, const Context& context)
{
    CsrArrays<T> out;
    out.row_ptr = sums_before(count, rows, context);
    const auto nnz = static_cast<std::size_t>(fetch(out.row_ptr.data() + rows, context));
    if (nnz == room.values.size()) {
        return room;
    }
    out.col_idx = DeviceArray<std::int32_t>(*context.memory, nnz);
    out.values = DeviceArray<T>(*context.memory, nnz);
    for_each_row_by<4>(rows, context,
                       [from = room.row_ptr.data(), to = out.row_ptr.data(), columns = room.col_idx.data(),
                        values = room.values.data(), to_columns = out.col_idx.data(),
                        to_values = out.values.data()] __device__(std::int64_t row, int lane, int lanes) {
                           const std::int64_t n = to[row + 1] - to[row];
                           for (std::int64_t i = lane; i < n; i += lanes) {
                               to_columns[to[row] + i] = columns[from[row] + i];
                               to_values[to[row] + i] = values[from[row] + i];
                           }
                       });
    return out;
}

/// The matrix whose rows f(row, sum) leaves in sum, sorted. \param most  entries of each row's sum, at most `widest`
/// \param most_left  entries that a row has in the end; 0: no bound
template <class T, class F>
CsrArrays<T> collect_rows(std::int64_t rows, const std::int32_t* most, std::int32_t widest, std::int64_t most_left,
                          const Context& context, const F& f)
{
    const DeviceArray<std::int32_t> count(*context.memory, static_cast<std::size_t>(rows));
    for_each(rows, context, [most, most_left, count = count.data()] __device__(std::int64_t row) {
        count[row] = most_left > 0 && most[row] > most_left ? static_cast<std::int32_t>(most_left) : most[row];
    });
    CsrArrays<T> room = make_room<T>(count.data(), rows, context);
    for_row_sums(rows, most, widest, context,
                 WriteRow<T, F>{f, room.row_ptr.data(), room.col_idx.data(), room.values.data(), count.data()});
    return packed(std::move(room), count.data(), rows, context);
}

}  // namespace rmsp::kernels::cuda::coarsening
