#include <limits>
#include <string>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_launch.cuh>
#include <kernels/spmv/policy.hpp>
#include <kernels/spmv/spmv.hpp>
#include <kernels/spmv/staged_rows.hpp>

namespace rmsp::kernels {
namespace {

constexpr int threads = 128;

/// A group of `Lanes` threads a row (Bell and Garland, "Implementing sparse matrix-vector multiplication on
/// throughput-oriented processors", SC 2009).
template <int Lanes, class T, class Offset>
__global__ void __launch_bounds__(threads)
    row_vector_kernel(std::int64_t rows, const Offset* __restrict__ row_ptr, const std::int32_t* __restrict__ col_idx,
                      const T* __restrict__ values, T alpha, const T* __restrict__ x, T beta, T* __restrict__ y)
{
    cuda::wait_for_kernel_before();
    const std::int64_t row = std::int64_t{blockIdx.x} * (threads / Lanes) + threadIdx.x / Lanes;
    const int lane = static_cast<int>(threadIdx.x) % Lanes;
    const bool active = row < rows;
    const Offset begin = active ? __ldg(row_ptr + row) : 0;
    const Offset end = active ? __ldg(row_ptr + row + 1) : 0;
    const std::int32_t* columns = col_idx + begin + lane;
    const T* entries = values + begin + lane;
    constexpr int step = row_vector_unroll * Lanes;
    T sum = 0;
    // Counts down what is left, because begin + step may pass what 32 bits hold.
    for (Offset left = end - begin - lane; left > 0; left -= step, columns += step, entries += step) {
        std::int32_t column[row_vector_unroll];
        T value[row_vector_unroll];
        T gathered[row_vector_unroll];
#pragma unroll
        for (int k = 0; k < row_vector_unroll; ++k) {
            const bool in = k * Lanes < left;
            column[k] = in ? __ldcs(columns + k * Lanes) : 0;
            value[k] = in ? __ldcs(entries + k * Lanes) : T{0};
        }
#pragma unroll
        for (int k = 0; k < row_vector_unroll; ++k) {
            gathered[k] = k * Lanes < left ? __ldg(x + column[k]) : T{0};
        }
#pragma unroll
        for (int k = 0; k < row_vector_unroll; ++k) {
            sum += value[k] * gathered[k];
        }
    }
    sum = cuda::group_sum(sum, Lanes);
    if (active && lane == 0) {
        y[row] = beta == T{0} ? alpha * sum : alpha * sum + beta * y[row];
    }
}

template <class T, class Offset>
class RowVector final : public SpmvOperator<T> {
public:
    RowVector(const CsrShard<T>& shard, const Offset* row_ptr, int lanes)
        : shard_(shard), row_ptr_(row_ptr), lanes_(lanes)
    {
        if (blocks_for(shard.rows) > std::numeric_limits<std::int32_t>::max()) {
            throw Error(ErrorCode::usage, "SpMV with " + std::to_string(lanes) + " lanes a row: " +
                                              std::to_string(shard.rows) + " rows are more than one launch takes");
        }
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        apply_rows(0, shard_.rows, alpha, x, beta, y, context);
    }

    std::int64_t row_granule() const override { return 1; }

    void apply_rows(std::int64_t first, std::int64_t end, T alpha, const T* x, T beta, T* y,
                    const Context& context) override
    {
        if (first >= end) {
            return;
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        switch (lanes_) {
            case 2:
                return launch<2>(first, end, alpha, x, beta, y, stream);
            case 4:
                return launch<4>(first, end, alpha, x, beta, y, stream);
            case 8:
                return launch<8>(first, end, alpha, x, beta, y, stream);
            case 16:
                return launch<16>(first, end, alpha, x, beta, y, stream);
            default:
                return launch<32>(first, end, alpha, x, beta, y, stream);
        }
    }

private:
    std::int64_t blocks_for(std::int64_t rows) const
    {
        const std::int64_t rows_per_block = threads / lanes_;
        return (rows + rows_per_block - 1) / rows_per_block;
    }

    template <int Lanes>
    void launch(std::int64_t first, std::int64_t end, T alpha, const T* x, T beta, T* y, cudaStream_t stream) const
    {
        const std::int64_t rows = end - first;
        cuda::launch_early("launch of csr-row-vector", row_vector_kernel<Lanes, T, Offset>,
                           dim3(static_cast<unsigned>(blocks_for(rows))), threads, stream, rows, row_ptr_ + first,
                           shard_.col_idx, shard_.values, alpha, x, beta, y + first);
    }

    CsrShard<T> shard_;
    const Offset* row_ptr_;
    int lanes_;
};

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare(const CsrShard<T>& shard, int lanes)
{
    if (shard.row_ptr.type() == IndexType::i32) {
        return std::make_unique<RowVector<T, std::int32_t>>(
            shard, static_cast<const std::int32_t*>(shard.row_ptr.data()), lanes);
    }
    return std::make_unique<RowVector<T, std::int64_t>>(shard, static_cast<const std::int64_t*>(shard.row_ptr.data()),
                                                        lanes);
}

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_row_vector(const CsrShard<T>& shard, const RowStatistics& rows,
                                                    const Context& context)
{
    if (stages_rows(rows)) {
        if (auto staged = prepare_staged_rows(shard, rows, context)) {
            return staged;
        }
    }
    return prepare(shard, row_vector_lanes(rows.mean));
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_row_warp(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                  const Context& /*context*/)
{
    // Fixed, so that the order of the additions in a row depends on the row alone.
    return prepare(shard, 32);
}

template std::unique_ptr<SpmvOperator<float>> prepare_row_vector(const CsrShard<float>&, const RowStatistics&,
                                                                 const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_row_vector(const CsrShard<double>&, const RowStatistics&,
                                                                  const Context&);
template std::unique_ptr<SpmvOperator<float>> prepare_row_warp(const CsrShard<float>&, const RowStatistics&,
                                                               const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_row_warp(const CsrShard<double>&, const RowStatistics&,
                                                                const Context&);

}  // namespace rmsp::kernels
