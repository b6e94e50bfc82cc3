#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_primitives.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/steps/coarsening/coarsening.hpp>

/// What the steps of coarsening share: a thread a row, and scans.
namespace rmsp::kernels::cuda::coarsening {

inline constexpr int threads = 256;

inline cudaStream_t stream_of(const Context& context) { return static_cast<cudaStream_t>(context.stream); }

inline unsigned blocks_for(std::int64_t n, int each = threads)
{
    const std::int64_t blocks = (n + each - 1) / each;
    if (blocks > std::numeric_limits<std::int32_t>::max()) {
        throw Error(ErrorCode::usage, "coarsening: " + std::to_string(n) + " rows are more than one launch takes");
    }
    return static_cast<unsigned>(blocks);
}

/// Row pointers of either width. Device lambdas cannot be inside generic ones, so the width is asked for where they are
/// read.
struct RowPointers {
    RowPointers() = default;
    explicit RowPointers(IndexView view)
        : narrow(view.type() == IndexType::i32 ? static_cast<const std::int32_t*>(view.data()) : nullptr),
          wide(view.type() == IndexType::i32 ? nullptr : static_cast<const std::int64_t*>(view.data()))
    {
    }
    __device__ __forceinline__ std::int64_t operator[](std::int64_t row) const
    {
        return narrow != nullptr ? std::int64_t{narrow[row]} : wide[row];
    }

    const std::int32_t* narrow = nullptr;
    const std::int64_t* wide = nullptr;
};

template <class F>
__global__ void __launch_bounds__(threads) each_kernel(std::int64_t n, const __grid_constant__ F f)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    if (i < n) {
        f(i);
    }
}

/// f(i) for i in [0, n), a thread each.
template <class F>
void for_each(std::int64_t n, const Context& context, const F& f)
{
    if (n > 0) {
        each_kernel<<<blocks_for(n), threads, 0, stream_of(context)>>>(n, f);
        RMSP_CUDA_CHECK_LAUNCH("each_kernel");
    }
}

template <int Lanes, class F>
__global__ void __launch_bounds__(threads) lanes_kernel(std::int64_t rows, const __grid_constant__ F f)
{
    const std::int64_t row = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / Lanes;
    if (row < rows) {
        f(row, static_cast<int>(threadIdx.x) % Lanes, Lanes);
    }
}

/// What op makes of the x of all `lanes` threads of for_each_row() that share a row; the first one's is that.
template <class X, class Op>
__device__ __forceinline__ X over_lanes(X x, int lanes, const Op& op)
{
    const auto n = static_cast<unsigned>(lanes);
    const unsigned mask = (lanes == 32 ? ~0U : (1U << n) - 1) << (threadIdx.x % 32 / n * n);
    for (unsigned distance = n / 2; distance > 0; distance /= 2) {
        x = op(x, __shfl_down_sync(mask, x, distance, lanes));
    }
    return x;
}

/// f(row, lane, lanes) for the rows [0, rows), by so many neighbouring threads of a warp each.
template <int Lanes, class F>
void for_each_row_by(std::int64_t rows, const Context& context, const F& f)
{
    if (rows > 0) {
        lanes_kernel<Lanes><<<blocks_for(rows, threads / Lanes), threads, 0, stream_of(context)>>>(rows, f);
        RMSP_CUDA_CHECK_LAUNCH("lanes_kernel");
    }
}

/// \name Entries a row, on average, up to which a matrix has short and middling rows
/// @{
inline constexpr std::int64_t most_of_short_rows = 12;
inline constexpr std::int64_t most_of_middling_rows = 40;
/// @}

/// The same with as many threads as suit rows of a matrix of `nnz` entries: few entries a thread finds in lines that
/// others of the warp have just read.
template <class F>
void for_each_row(std::int64_t rows, std::int64_t nnz, const Context& context, const F& f)
{
    if (nnz <= most_of_short_rows * rows) {
        for_each_row_by<1>(rows, context, f);
    } else if (nnz <= most_of_middling_rows * rows) {
        for_each_row_by<8>(rows, context, f);
    } else {
        for_each_row_by<32>(rows, context, f);
    }
}

/// use(load(k)) for k = begin + lane, begin + lane + lanes, ... before end, in this order. AtOnce of them are loaded
/// before the first is used, so that they do not wait for each other.
template <int AtOnce, class Load, class Use>
__device__ __forceinline__ void for_each_entry(std::int64_t begin, std::int64_t end, int lane, int lanes,
                                               const Load& load, const Use& use)
{
    for (std::int64_t k = begin + lane; k < end; k += AtOnce * lanes) {
        decltype(load(k)) loaded[AtOnce];
#pragma unroll
        for (int i = 0; i < AtOnce; ++i) {
            if (k + i * lanes < end) {
                loaded[i] = load(k + i * lanes);
            }
        }
#pragma unroll
        for (int i = 0; i < AtOnce; ++i) {
            if (k + i * lanes < end) {
                use(loaded[i]);
            }
        }
    }
}

template <class X>
DeviceArray<X> zeros(std::int64_t n, const Context& context)
{
    DeviceArray<X> all(*context.memory, static_cast<std::size_t>(n));
    if (n > 0) {
        RMSP_CUDA_CHECK(cudaMemsetAsync(all.data(), 0, static_cast<std::size_t>(n) * sizeof(X), stream_of(context)));
    }
    return all;
}

/// One number of the device; waits.
template <class X>
X fetch(const X* from, const Context& context)
{
    return read(from, stream_of(context));
}

/// The largest of n > 0 numbers; waits.
inline std::int32_t largest_of(const std::int32_t* numbers, std::int64_t n, const Context& context)
{
    const DeviceArray<std::int32_t> found(*context.memory, 1);
    cuda::largest(numbers, n, found.data(), context);
    return fetch(found.data(), context);
}

/// The sum of n > 0 numbers; waits.
template <class X>
X sum_of(const X* numbers, std::int64_t n, const Context& context)
{
    const DeviceArray<X> found(*context.memory, 1);
    cuda::sum(numbers, n, found.data(), context);
    return fetch(found.data(), context);
}

/// Sums of the numbers before each of n counts, and of all: n + 1 of them.
inline DeviceArray<std::int64_t> sums_before(const std::int32_t* counts, std::int64_t n, const Context& context)
{
    DeviceArray<std::int64_t> sums(*context.memory, static_cast<std::size_t>(n) + 1);
    for_each(n + 1, context,
             [n, counts, out = sums.data()] __device__(std::int64_t i) { out[i] = i < n ? counts[i] : 0; });
    exclusive_sum(sums.data(), n + 1, context);
    return sums;
}

/// The diagonal; 0 where it has no entry. \param first_row  the number of A's first row \param out  along all rows
template <class T>
void find_diagonal(const CsrShard<T>& a, std::int64_t first_row, double* out, const Context& context)
{
    const RowPointers row_ptr(a.row_ptr);
    for_each(a.rows, context,
             [row_ptr, first_row, columns = a.col_idx, values = a.values, out] __device__(std::int64_t row) {
                 double found = 0;
                 for (std::int64_t k = row_ptr[row]; k < row_ptr[row + 1]; ++k) {
                     if (columns[k] == first_row + row) {
                         found = static_cast<double>(values[k]);
                     }
                 }
                 out[first_row + row] = found;
             });
}

/// The diagonal of a matrix of which all rows are there.
template <class T>
DeviceArray<double> diagonal_of(const CsrShard<T>& a, const Context& context)
{
    DeviceArray<double> diagonal(*context.memory, static_cast<std::size_t>(a.rows));
    find_diagonal(a, 0, diagonal.data(), context);
    return diagonal;
}

}  // namespace rmsp::kernels::cuda::coarsening
