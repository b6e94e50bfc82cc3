#include <algorithm>
#include <cstdint>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/steps/diagonal/diagonal.hpp>

namespace rmsp::kernels {
namespace cuda::diagonal {
namespace {

constexpr int threads = 256;
constexpr int lanes = 8;                      // of a row
constexpr int blocks_per_multiprocessor = 8;  // fills a multiprocessor's 2048 threads

unsigned grid_for(std::int64_t blocks, const Context& context)
{
    const std::int64_t full = std::int64_t{std::max(context.compute_units, 1)} * blocks_per_multiprocessor;
    return static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, full));
}

/// Calls row_sum(row) for the rows [0, rows), `lanes` neighbouring threads each, and writes what they found together.
template <class T, class RowSum>
__device__ __forceinline__ void for_each_row(std::int64_t rows, T* out, const RowSum& row_sum)
{
    constexpr int rows_each = threads / lanes;
    const std::int64_t step = std::int64_t{gridDim.x} * rows_each;
    // The same number of times for all threads of a warp.
    for (std::int64_t first = std::int64_t{blockIdx.x} * rows_each; first < rows; first += step) {
        const std::int64_t row = first + threadIdx.x / lanes;
        const T sum = group_sum(row < rows ? row_sum(row) : T{0}, lanes);
        if (row < rows && threadIdx.x % lanes == 0) {
            out[row] = sum;
        }
    }
}

template <class T, class Offset>
__global__ void __launch_bounds__(threads)
    csr_diagonal_kernel(const Offset* __restrict__ row_ptr, std::int64_t rows, const std::int32_t* __restrict__ col_idx,
                        const T* __restrict__ values, std::int64_t diagonal, T* __restrict__ out)
{
    for_each_row(rows, out, [=](std::int64_t row) {
        T sum = 0;
        for (std::int64_t k = row_ptr[row] + threadIdx.x % lanes; k < row_ptr[row + 1]; k += lanes) {
            if (col_idx[k] == diagonal + row) {
                sum += values[k];
            }
        }
        return sum;
    });
}

/// `Lanes` threads a row.
template <int Lanes, class T, class Offset>
__global__ void __launch_bounds__(threads)
    csr_row_norms_kernel(const Offset* __restrict__ row_ptr, std::int64_t rows,
                         const std::int32_t* __restrict__ col_idx, const T* __restrict__ values, std::int64_t diagonal,
                         T* __restrict__ out)
{
    constexpr int rows_each = threads / Lanes;
    const int lane = static_cast<int>(threadIdx.x) % Lanes;
    const std::int64_t step = std::int64_t{gridDim.x} * rows_each;
    // The same number of times for all threads of a warp.
    for (std::int64_t first = std::int64_t{blockIdx.x} * rows_each; first < rows; first += step) {
        const std::int64_t row = first + threadIdx.x / Lanes;
        double sum = 0;
        double own = 0;
        const std::int64_t end = row < rows ? row_ptr[row + 1] : 0;
        for (std::int64_t k = row < rows ? row_ptr[row] + lane : 0; k < end; k += Lanes) {
            sum += fabs(static_cast<double>(values[k]));
            own += col_idx[k] == diagonal + row ? static_cast<double>(values[k]) : 0.0;
        }
        sum = group_sum(sum, Lanes);
        own = group_sum(own, Lanes);
        if (row < rows && lane == 0) {
            out[row] = static_cast<T>(own < 0 ? -sum : sum);
        }
    }
}

/// The first of the entries whose row is not below `row`.
__device__ __forceinline__ std::int64_t first_entry(const std::int32_t* row_idx, std::int64_t nnz, std::int64_t row)
{
    std::int64_t begin = 0;
    std::int64_t end = nnz;
    while (begin < end) {
        const std::int64_t middle = begin + (end - begin) / 2;
        if (row_idx[middle] < row) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin;
}

template <class T>
__global__ void __launch_bounds__(threads)
    sorted_diagonal_kernel(const std::int32_t* __restrict__ row_idx, const std::int32_t* __restrict__ col_idx,
                           const T* __restrict__ values, std::int64_t nnz, std::int64_t first, std::int64_t count,
                           T* __restrict__ out)
{
    for_each_row(count, out, [=](std::int64_t i) {
        const std::int64_t row = first + i;
        T sum = 0;
        for (std::int64_t k = first_entry(row_idx, nnz, row) + threadIdx.x % lanes; k < nnz && row_idx[k] == row;
             k += lanes) {
            if (col_idx[k] == row) {
                sum += values[k];
            }
        }
        return sum;
    });
}

template <class T>
__global__ void __launch_bounds__(threads)
    unsorted_diagonal_kernel(const std::int32_t* __restrict__ row_idx, const std::int32_t* __restrict__ col_idx,
                             const T* __restrict__ values, std::int64_t nnz, std::int64_t first, std::int64_t count,
                             T* out)
{
    const std::int64_t step = std::int64_t{gridDim.x} * threads;
    for (std::int64_t k = std::int64_t{blockIdx.x} * threads + threadIdx.x; k < nnz; k += step) {
        const std::int64_t row = row_idx[k];
        if (row == col_idx[k] && row >= first && row < first + count) {
            atomicAdd(out + (row - first), values[k]);
        }
    }
}

/// \param no_divisors  how many there are, and n less the first of them
template <class T>
__global__ void __launch_bounds__(threads)
    divide_by_kernel(double factor, const T* in, std::int64_t n, T* out, unsigned long long* no_divisors)
{
    const std::int64_t step = std::int64_t{gridDim.x} * threads;
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n; i += step) {
        const T entry = in[i];
        const bool good = entry != T{0} && isfinite(entry);
        if (!good) {
            atomicAdd(no_divisors, 1ULL);
            atomicMax(no_divisors + 1, static_cast<unsigned long long>(n - i));
        }
        out[i] = static_cast<T>(factor / (good ? static_cast<double>(entry) : 1.0));
    }
}

cudaStream_t stream_of(const Context& context) { return static_cast<cudaStream_t>(context.stream); }

std::int64_t blocks_of_rows(std::int64_t rows) { return (rows + threads / lanes - 1) / (threads / lanes); }

template <class T>
void csr_diagonal(const CsrShard<T>& part, T* out, const Context& context)
{
    if (part.rows == 0) {
        return;
    }
    part.row_ptr.visit([&](const auto* row_ptr) {
        csr_diagonal_kernel<<<grid_for(blocks_of_rows(part.rows), context), threads, 0, stream_of(context)>>>(
            row_ptr, part.rows, part.col_idx, part.values, part.diagonal, out);
        RMSP_CUDA_CHECK_LAUNCH("csr_diagonal");
    });
}

template <class T>
void csr_row_norms(const CsrShard<T>& part, T* out, const Context& context)
{
    if (part.rows == 0) {
        return;
    }
    part.row_ptr.visit([&](const auto* row_ptr) {
        constexpr std::int64_t few = 12;  // that a thread finds in lines that others of its warp have just read
        using Offset = std::remove_cvref_t<decltype(*row_ptr)>;
        const bool wide = part.nnz > few * part.rows;
        const auto kernel = wide ? csr_row_norms_kernel<lanes, T, Offset> : csr_row_norms_kernel<1, T, Offset>;
        const std::int64_t blocks = wide ? blocks_of_rows(part.rows) : (part.rows + threads - 1) / threads;
        kernel<<<grid_for(blocks, context), threads, 0, stream_of(context)>>>(row_ptr, part.rows, part.col_idx,
                                                                              part.values, part.diagonal, out);
        RMSP_CUDA_CHECK_LAUNCH("csr_row_norms");
    });
}

template <class T>
void coo_diagonal(const std::int32_t* row_idx, const std::int32_t* col_idx, const T* values, std::int64_t nnz,
                  std::int64_t first, std::int64_t count, bool sorted, T* out, const Context& context)
{
    if (count == 0 || (nnz == 0 && !sorted)) {
        return;
    }
    if (sorted) {
        sorted_diagonal_kernel<<<grid_for(blocks_of_rows(count), context), threads, 0, stream_of(context)>>>(
            row_idx, col_idx, values, nnz, first, count, out);
    } else {
        unsorted_diagonal_kernel<<<grid_for((nnz + threads - 1) / threads, context), threads, 0, stream_of(context)>>>(
            row_idx, col_idx, values, nnz, first, count, out);
    }
    RMSP_CUDA_CHECK_LAUNCH("coo_diagonal");
}

template <class T>
NoDivisors divide_by(double factor, const T* in, std::int64_t n, T* out, const Context& context)
{
    if (n == 0) {
        return {};
    }
    const DeviceArray<unsigned long long> no_divisors(*context.memory, 2);
    RMSP_CUDA_CHECK(cudaMemsetAsync(no_divisors.data(), 0, 2 * sizeof(unsigned long long), stream_of(context)));
    divide_by_kernel<<<grid_for((n + threads - 1) / threads, context), threads, 0, stream_of(context)>>>(
        factor, in, n, out, no_divisors.data());
    RMSP_CUDA_CHECK_LAUNCH("divide_by");
    unsigned long long found[2] = {};
    read(found, no_divisors.data(), sizeof(found), stream_of(context));
    return {static_cast<std::int64_t>(found[0]), found[0] > 0 ? n - static_cast<std::int64_t>(found[1]) : -1};
}

}  // namespace
}  // namespace cuda::diagonal

RMSP_VALUE_ROW(Diagonals, cuda, .csr_diagonal = cuda::diagonal::csr_diagonal<T>,
               .coo_diagonal = cuda::diagonal::coo_diagonal<T>, .csr_row_norms = cuda::diagonal::csr_row_norms<T>,
               .divide_by = cuda::diagonal::divide_by<T>)

}  // namespace rmsp::kernels
