#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <kernels/steps/coarsening/row_sums.cuh>

/// P of smoothed aggregation.
namespace rmsp::kernels::cuda::coarsening {

/// A without its weak entries; its diagonal has them.
template <class T>
struct Filtered {
    RowPointers row_ptr;
    const std::int32_t* columns;
    const T* values;
    const std::uint8_t* strong;
    const double* inverse;  ///< of the diagonal; 0 where there is none

    /// f(column, value) for the strong entries of a row.
    template <class F>
    __device__ __forceinline__ void for_strong(std::int64_t row, const F& f) const
    {
        for (std::int64_t k = row_ptr[row]; k < row_ptr[row + 1]; ++k) {
            if (strong[k] != 0 && columns[k] != row) {
                f(columns[k], static_cast<double>(values[k]));
            }
        }
    }
};

/// The aggregates, and P before it is smoothed.
struct Aggregated {
    const std::int32_t* number;
    const double* values;
    const double* coarse;

    /// The near-null vector; 1 where there is none.
    __device__ __forceinline__ double near(std::int64_t row) const
    {
        const double value = number[row] < 0 ? 0.0 : values[row] * coarse[number[row]];
        return value != 0 ? value : 1.0;
    }
};

template <class T>
DeviceArray<double> inverse_diagonal(const CsrShard<T>& a, const std::uint8_t* strong, const Aggregated& t,
                                     const Context& context)
{
    DeviceArray<double> inverse(*context.memory, static_cast<std::size_t>(a.rows));
    const RowPointers row_ptr(a.row_ptr);
    for_each(a.rows, context,
             [row_ptr, columns = a.col_idx, values = a.values, strong, t,
              inverse = inverse.data()] __device__(std::int64_t row) {
                 double own = 0;
                 double weak = 0;
                 for (std::int64_t k = row_ptr[row]; k < row_ptr[row + 1]; ++k) {
                     const std::int64_t column = columns[k];
                     if (column == row) {
                         own += static_cast<double>(values[k]);
                     } else if (strong[k] == 0) {
                         weak += static_cast<double>(values[k]) * t.near(column) / t.near(row);
                     }
                 }
                 // Weak entries of a row without strong ones may cancel its diagonal.
                 const double sum = own + weak;
                 const double diagonal = fabs(sum) > 1e-12 * fabs(own) ? sum : own;
                 inverse[row] = diagonal != 0 && isfinite(diagonal) ? 1 / diagonal : 0.0;
             });
    return inverse;
}

/// The sum of n > 0 squares; waits. `room` has n entries.
inline double sum_of_squares(const double* v, std::int64_t n, double* room, const Context& context)
{
    for_each(n, context, [v, room] __device__(std::int64_t i) { room[i] = v[i] * v[i]; });
    const DeviceArray<double> sum(*context.memory, 1);
    std::size_t bytes = 0;
    RMSP_CUDA_CHECK(cub::DeviceReduce::Sum(nullptr, bytes, room, sum.data(), n, stream_of(context)));
    const DeviceArray<std::byte> workspace(*context.memory, bytes);
    RMSP_CUDA_CHECK(cub::DeviceReduce::Sum(workspace.data(), bytes, room, sum.data(), n, stream_of(context)));
    return fetch(sum.data(), context);
}

/// w = D^-1 A_F (scale v), `Lanes` threads a row; a block's sum of the squares of w to partial[blockIdx.x].
template <int Lanes, class T>
__global__ void __launch_bounds__(threads)
    filtered_product_kernel(Filtered<T> a, std::int64_t rows, double scale, const double* __restrict__ v, double* w,
                            double* partial)
{
    constexpr int at_once = 4;  // loads before the first is used
    constexpr int rows_each = threads / Lanes;
    const int lane = static_cast<int>(threadIdx.x) % Lanes;
    double squares = 0;
    // All threads of a warp stay to the end, for the sums.
    const std::int64_t step = std::int64_t{gridDim.x} * rows_each;
    const std::int64_t rounds = (rows + step - 1) / step;
    std::int64_t row = std::int64_t{blockIdx.x} * rows_each + static_cast<int>(threadIdx.x) / Lanes;
    for (std::int64_t round = 0; round < rounds; ++round, row += step) {
        const std::int64_t end = row < rows ? a.row_ptr[row + 1] : 0;
        double sum = 0;
        for (std::int64_t k = row < rows ? a.row_ptr[row] + lane : 0; k < end; k += at_once * Lanes) {
            std::int32_t column[at_once];
            double entry[at_once];
#pragma unroll
            for (int i = 0; i < at_once; ++i) {
                const std::int64_t at = k + i * Lanes;
                column[i] = at < end && a.strong[at] != 0 ? a.columns[at] : -1;
                entry[i] = at < end ? static_cast<double>(a.values[at]) : 0.0;
            }
#pragma unroll
            for (int i = 0; i < at_once; ++i) {
                sum += column[i] >= 0 && column[i] != row ? entry[i] * v[column[i]] : 0.0;
            }
        }
        for (int distance = Lanes / 2; distance > 0; distance /= 2) {
            sum += __shfl_down_sync(~0U, sum, distance, Lanes);
        }
        if (row < rows && lane == 0) {
            const double inverse = a.inverse[row];
            const double all = inverse != 0 ? scale * (v[row] + inverse * sum) : 0.0;
            w[row] = all;
            squares += all * all;
        }
    }
    __shared__ double of_warp[threads / 32];
    for (int distance = 16; distance > 0; distance /= 2) {
        squares += __shfl_down_sync(~0U, squares, distance);
    }
    if (threadIdx.x % 32 == 0) {
        of_warp[threadIdx.x / 32] = squares;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        double all = 0;
        for (const double one : of_warp) {
            all += one;
        }
        partial[blockIdx.x] = all;
    }
}

/// Of D^-1 A_F, by the power method, from the same vector as on the host. \param nnz  of A
template <class T>
double largest_eigenvalue(const Filtered<T>& a, std::int64_t rows, std::int64_t nnz, const Context& context)
{
    constexpr int steps = 15;
    constexpr std::int64_t blocks_each = 16;  // of a multiprocessor
    const auto n = static_cast<std::size_t>(rows);
    DeviceArray<double> v(*context.memory, n);
    DeviceArray<double> w(*context.memory, n);
    const auto blocks = static_cast<unsigned>(
        std::min<std::int64_t>(blocks_for(rows, threads / 32), blocks_each * std::max(context.compute_units, 1)));
    const DeviceArray<double> partial(*context.memory, blocks);
    const auto product = [&](double scale) {
        // So that a row of mean length takes about one step.
        const auto kernel = nnz <= 8 * rows    ? filtered_product_kernel<2, T>
                            : nnz <= 16 * rows ? filtered_product_kernel<4, T>
                            : nnz <= 32 * rows ? filtered_product_kernel<8, T>
                                               : filtered_product_kernel<32, T>;
        kernel<<<blocks, threads, 0, stream_of(context)>>>(a, rows, scale, v.data(), w.data(), partial.data());
        RMSP_CUDA_CHECK_LAUNCH("filtered_product_kernel");
        std::vector<double> parts(blocks);
        RMSP_CUDA_CHECK(cudaMemcpyAsync(parts.data(), partial.data(), parts.size() * sizeof(double),
                                        cudaMemcpyDeviceToHost, stream_of(context)));
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream_of(context)));
        return std::accumulate(parts.begin(), parts.end(), 0.0);
    };
    for_each(rows, context, [v = v.data()] __device__(std::int64_t row) {
        const std::uint64_t bits = (static_cast<std::uint64_t>(row) + 1) * 0x9e3779b97f4a7c15U;
        v[row] = static_cast<double>(bits >> 11U) * 0x1p-52 - 1;
    });
    double squares_v = sum_of_squares(v.data(), rows, w.data(), context);
    double largest = 0;
    double scale = 1;
    for (int step = 0; step < steps; ++step) {
        const double squares_w = product(scale);
        if (!(squares_w > 0) || !(squares_v > 0) || !std::isfinite(squares_w)) {
            break;
        }
        largest = std::sqrt(squares_w / squares_v);
        scale = 1 / std::sqrt(squares_w);
        squares_v = 1;
        std::swap(v, w);
    }
    return largest;
}

template <class T>
struct SmoothRow {
    Filtered<T> filtered;
    Aggregated t;
    double omega;
    bool smooth;

    __device__ void add_row(std::int64_t row, double factor, ThreadSum& sum) const
    {
        if (t.number[row] >= 0) {
            sum.add(t.number[row], factor * t.values[row]);
        }
    }
    __device__ void operator()(std::int64_t row, ThreadSum& sum) const
    {
        const double scale = omega * filtered.inverse[row];
        add_row(row, scale != 0 ? 1 - omega : 1.0, sum);
        if (smooth) {
            filtered.for_strong(row, [&](std::int64_t column, double value) { add_row(column, -scale * value, sum); });
        }
        matrix::sort_by_column(sum);
    }
};

template <class T>
std::optional<CsrArrays<T>> smoothed_prolongator(const CsrShard<T>& a, const std::uint8_t* strong,
                                                 const std::int32_t* number, const double* values, const double* coarse,
                                                 bool smooth, const Context& context)
{
    const DeviceArray<std::int32_t> most(*context.memory, static_cast<std::size_t>(a.rows));
    const RowPointers row_ptr(a.row_ptr);
    for_each(a.rows, context, [row_ptr, strong, smooth, most = most.data()] __device__(std::int64_t row) {
        std::int64_t found = 1;
        for (std::int64_t k = row_ptr[row]; smooth && k < row_ptr[row + 1]; ++k) {
            found += strong[k] != 0 ? 1 : 0;
        }
        most[row] = static_cast<std::int32_t>(found > widest_row ? widest_row + 1 : found);
    });
    const std::int32_t widest = a.rows > 0 ? largest_of(most.data(), a.rows, context) : 0;
    if (widest > widest_row) {
        return std::nullopt;
    }
    const Aggregated t{number, values, coarse};
    const DeviceArray<double> inverse = inverse_diagonal(a, strong, t, context);
    const Filtered<T> filtered{row_ptr, a.col_idx, a.values, strong, inverse.data()};
    const double largest = smooth && a.rows > 0 ? largest_eigenvalue(filtered, a.rows, a.nnz, context) : 0.0;
    const double omega = largest > 0 ? 4.0 / 3.0 / largest : 0.0;
    return collect_rows<T>(a.rows, most.data(), widest, 0, context, SmoothRow<T>{filtered, t, omega, smooth});
}

}  // namespace rmsp::kernels::cuda::coarsening
