#include <limits>
#include <string>

#include <kernels/cuda_check.cuh>
#include <kernels/spmv/common/scale.cuh>
#include <kernels/spmv/common/search.hpp>
#include <kernels/spmv/formats.hpp>

namespace rmsp::kernels {
namespace {

constexpr int csc_threads = 256;
constexpr int items_per_lane = 8;
constexpr int chunk = 32 * items_per_lane;  ///< nonzeros of a warp

/// first_columns[k] = column of the first nonzero of chunk k; of the last nonzero for k = chunks.
template <class Offset>
__global__ void first_columns_kernel(std::int64_t chunks, std::int64_t cols, std::int64_t nnz,
                                     const Offset* __restrict__ col_ptr, std::int64_t* __restrict__ first_columns)
{
    const std::int64_t k = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (k <= chunks) {
        first_columns[k] = find_column(col_ptr, 0, cols - 1, k < chunks ? k * chunk : nnz - 1);
    }
}

/// One warp a chunk of consecutive nonzeros, whatever the lengths of the columns. Neighbouring lanes take neighbouring
/// nonzeros, so what they load is contiguous, and most of them share their entry of x.
template <class T, class Offset>
__global__ void __launch_bounds__(csc_threads)
    csc_atomic_kernel(std::int64_t nnz, std::int64_t first_row, const std::int64_t* __restrict__ first_columns,
                      const Offset* __restrict__ col_ptr, const std::int32_t* __restrict__ row_idx,
                      const T* __restrict__ values, T alpha, const T* __restrict__ x, T* __restrict__ y)
{
    const std::int64_t warp = std::int64_t{blockIdx.x} * (csc_threads / 32) + threadIdx.x / 32;
    const std::int64_t first = warp * chunk + threadIdx.x % 32;
    if (first >= nnz) {
        return;
    }
    std::int32_t row[items_per_lane];
    T value[items_per_lane];
#pragma unroll
    for (int k = 0; k < items_per_lane; ++k) {
        const std::int64_t i = first + k * 32;
        row[k] = i < nnz ? __ldcs(row_idx + i) : 0;
        value[k] = i < nnz ? __ldcs(values + i) : T{0};
    }
    std::int64_t column = first_columns[warp];
    const std::int64_t last = first_columns[warp + 1];
#pragma unroll
    for (int k = 0; k < items_per_lane; ++k) {
        const std::int64_t i = first + k * 32;
        if (i < nnz) {
            column = find_column(col_ptr, column, last, i);
            atomicAdd(y + (row[k] - first_row), alpha * (value[k] * __ldg(x + column)));
        }
    }
}

template <class T, class Offset>
class CscAtomic final : public SpmvOperator<T> {
public:
    CscAtomic(const CscShard<T>& shard, const Offset* col_ptr, const Context& context)
        : shard_(shard), col_ptr_(col_ptr), chunks_((shard.nnz + chunk - 1) / chunk)
    {
        if (chunks_ / (csc_threads / 32) >= std::numeric_limits<std::int32_t>::max()) {
            throw Error(ErrorCode::usage,
                        "csc-atomic: " + std::to_string(shard.nnz) + " nonzeros are more than one launch takes");
        }
        if (shard.nnz == 0) {
            return;
        }
        first_columns_ = DeviceArray<std::int64_t>(*context.memory, static_cast<std::size_t>(chunks_) + 1);
        first_columns_kernel<<<static_cast<unsigned>(chunks_ / csc_threads + 1), csc_threads, 0,
                               static_cast<cudaStream_t>(context.stream)>>>(chunks_, shard.cols, shard.nnz, col_ptr_,
                                                                            first_columns_.data());
        RMSP_CUDA_CHECK_LAUNCH("first_columns_kernel");
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        cuda::scale(shard_.rows, beta, y, context.compute_units, stream);
        if (shard_.nnz == 0) {
            return;
        }
        constexpr int warps = csc_threads / 32;
        csc_atomic_kernel<<<static_cast<unsigned>((chunks_ + warps - 1) / warps), csc_threads, 0, stream>>>(
            shard_.nnz, shard_.first_row, first_columns_.data(), col_ptr_, shard_.row_idx, shard_.values, alpha, x, y);
        RMSP_CUDA_CHECK_LAUNCH("csc-atomic");
    }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(first_columns_.size() * sizeof(std::int64_t));
    }

private:
    CscShard<T> shard_;
    const Offset* col_ptr_;
    std::int64_t chunks_;
    DeviceArray<std::int64_t> first_columns_;  ///< chunks_ + 1
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_csc_atomic(const CscShard<T>& shard, const Context& context)
{
    if (shard.col_ptr.type() == IndexType::i32) {
        return std::make_unique<CscAtomic<T, std::int32_t>>(
            shard, static_cast<const std::int32_t*>(shard.col_ptr.data()), context);
    }
    return std::make_unique<CscAtomic<T, std::int64_t>>(shard, static_cast<const std::int64_t*>(shard.col_ptr.data()),
                                                        context);
}

#define RMSP_INSTANTIATE(T) \
    template std::unique_ptr<SpmvOperator<T>> prepare_csc_atomic(const CscShard<T>&, const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels
