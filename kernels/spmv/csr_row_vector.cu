#include <limits>
#include <string>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_launch.cuh>
#include <kernels/spmv/policy.hpp>
#include <kernels/spmv/spmv.hpp>

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

/// Asks for `bytes` bytes, a multiple of 16, in shared memory, as the barrier's; all addresses are such multiples.
__device__ __forceinline__ void copy_bulk(void* to, const void* from, int bytes, std::uint64_t* barrier)
{
#if __CUDA_ARCH__ >= 900
    const auto address = [](const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); };
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(address(to)),
        "l"(from), "r"(bytes), "r"(address(barrier))
        : "memory");
#endif
}

/// Columns and values of the nonzeros [first, first + n) in shared memory, for all threads of the block.
template <class T>
__device__ __forceinline__ void stage(const std::int32_t* col_idx, const T* values, int n, bool whole,
                                      std::int32_t* columns, T* entries)
{
#if __CUDA_ARCH__ >= 900
    if (whole) {
        __shared__ std::uint64_t barrier;
        const auto address = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address));
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            const int column_bytes = n * static_cast<int>(sizeof(std::int32_t));
            const int value_bytes = n * static_cast<int>(sizeof(T));
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(address),
                         "r"(column_bytes + value_bytes)
                         : "memory");
            if (n > 0) {
                copy_bulk(columns, col_idx, column_bytes, &barrier);
                copy_bulk(entries, values, value_bytes, &barrier);
            }
        }
        __syncthreads();
        asm volatile(
            "{ .reg .pred done; again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1; @!done bra again; }" ::"r"(
                address),
            "r"(0)
            : "memory");
        return;
    }
#endif
    for (int i = static_cast<int>(threadIdx.x); i < n; i += threads) {
        columns[i] = col_idx[i];
        entries[i] = values[i];
    }
    __syncthreads();
}

/// A block's rows in shared memory, where 4 lanes a row sum them: their nonzeros are contiguous, so bulk copies bring them
/// in long requests without registers, and 8 rows of a stencil gather from few lines at once, where a row's whole would from
/// many.
/// \param capacity  multiple of 4, at least the nonzeros of a block's rows and 6
template <class T, class Offset>
__global__ void __launch_bounds__(threads, 16)
    row_staged_kernel(std::int64_t rows, std::int64_t nnz, const Offset* __restrict__ row_ptr,
                      const std::int32_t* __restrict__ col_idx, const T* __restrict__ values, int capacity, T alpha,
                      const T* __restrict__ x, T beta, T* __restrict__ y)
{
    constexpr int lanes = row_staged_lanes;
    constexpr int unroll = 7;
    extern __shared__ int4 staged[];
    T* const entries = reinterpret_cast<T*>(staged);
    std::int32_t* const columns = reinterpret_cast<std::int32_t*>(entries + capacity);
    cuda::wait_for_kernel_before();
    const std::int64_t first_row = std::int64_t{blockIdx.x} * (threads / lanes);
    const std::int64_t row = first_row + threadIdx.x / lanes;
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    const bool active = row < rows;
    // From a multiple of 4 to one, if the arrays have that much.
    const Offset base = __ldg(row_ptr + first_row) / 4 * 4;
    const Offset last = __ldg(row_ptr + min(first_row + threads / lanes, rows));
    const int begin = active ? static_cast<int>(__ldg(row_ptr + row) - base) : 0;
    const int end = active ? static_cast<int>(__ldg(row_ptr + row + 1) - base) : 0;
    const int n = static_cast<int>(last - base);
    const bool whole = base + (n + 3) / 4 * 4 <= nnz;
    stage(col_idx + base, values + base, whole ? (n + 3) / 4 * 4 : n, whole, columns, entries);
    T sum = 0;
    for (int i = begin + lane; i < end; i += lanes * unroll) {
        T gathered[unroll];
#pragma unroll
        for (int k = 0; k < unroll; ++k) {
            gathered[k] = i + k * lanes < end ? __ldg(x + columns[i + k * lanes]) : T{0};
        }
#pragma unroll
        for (int k = 0; k < unroll; ++k) {
            if (i + k * lanes < end) {
                sum += entries[i + k * lanes] * gathered[k];
            }
        }
    }
    sum = cuda::group_sum(sum, lanes);
    if (active && lane == 0) {
        y[row] = beta == T{0} ? alpha * sum : alpha * sum + beta * y[row];
    }
}

template <class T, class Offset>
class RowVector final : public SpmvOperator<T> {
public:
    /// \param longest_row  0: not to be staged
    RowVector(const CsrShard<T>& shard, const Offset* row_ptr, int lanes, std::int64_t longest_row)
        : shard_(shard), row_ptr_(row_ptr), lanes_(lanes)
    {
        constexpr std::uintptr_t vector_bytes = 16;
        if (longest_row > 0 && reinterpret_cast<std::uintptr_t>(shard.col_idx) % vector_bytes == 0 &&
            reinterpret_cast<std::uintptr_t>(shard.values) % vector_bytes == 0) {
            lanes_ = row_staged_lanes;
            capacity_ = static_cast<int>(threads / row_staged_lanes * longest_row + 11) / 4 * 4;
            // Three quarters for the rows, the rest for x.
            RMSP_CUDA_CHECK(
                cudaFuncSetAttribute(row_staged_kernel<T, Offset>, cudaFuncAttributePreferredSharedMemoryCarveout, 75));
        }
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
        if (capacity_ > 0) {
            cuda::launch_early("launch of csr-row-vector, staged", row_staged_kernel<T, Offset>,
                               dim3(static_cast<unsigned>(blocks_for(end - first))), threads,
                               static_cast<std::size_t>(capacity_) * (sizeof(T) + sizeof(std::int32_t)), stream,
                               end - first, shard_.nnz, row_ptr_ + first, shard_.col_idx, shard_.values, capacity_,
                               alpha, x, beta, y + first);
            return;
        }
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
    int capacity_ = 0;  ///< nonzeros that a block stages; 0: none
};

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare(const CsrShard<T>& shard, int lanes, std::int64_t staged_longest_row)
{
    if (shard.row_ptr.type() == IndexType::i32) {
        return std::make_unique<RowVector<T, std::int32_t>>(
            shard, static_cast<const std::int32_t*>(shard.row_ptr.data()), lanes, staged_longest_row);
    }
    return std::make_unique<RowVector<T, std::int64_t>>(shard, static_cast<const std::int64_t*>(shard.row_ptr.data()),
                                                        lanes, staged_longest_row);
}

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_row_vector(const CsrShard<T>& shard, const RowStatistics& rows,
                                                    const Context& /*context*/)
{
    return prepare(shard, row_vector_lanes(rows.mean), stages_rows(rows, sizeof(T)) ? rows.longest_row : 0);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_row_warp(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                  const Context& /*context*/)
{
    // Fixed, so that the order of the additions in a row depends on the row alone.
    return prepare(shard, 32, 0);
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
