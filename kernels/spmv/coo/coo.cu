#include <limits>
#include <string>

#include <kernels/cuda_check.cuh>
#include <kernels/spmv/common/scale.cuh>
#include <kernels/spmv/formats.hpp>

namespace rmsp::kernels {
namespace {

constexpr int coo_threads = 256;
constexpr int items = 8;                       ///< entries of a thread
constexpr int capacity = coo_threads * items;  ///< entries of a tile

std::int64_t tiles_of(std::int64_t nnz)
{
    const std::int64_t tiles = (nnz + capacity - 1) / capacity;
    if (tiles >= std::numeric_limits<std::int32_t>::max()) {
        throw Error(ErrorCode::usage,
                    "coo-atomic: " + std::to_string(nnz) + " nonzeros are more than one launch takes");
    }
    return tiles;
}

template <class T>
__global__ void __launch_bounds__(coo_threads)
    coo_atomic_kernel(std::int64_t nnz, std::int64_t first_row, const std::int32_t* __restrict__ row_idx,
                      const std::int32_t* __restrict__ col_idx, const T* __restrict__ values, T alpha,
                      const T* __restrict__ x, T* __restrict__ y)
{
    const std::int64_t first = std::int64_t{blockIdx.x} * capacity + threadIdx.x;
    std::int32_t row[items];
    std::int32_t column[items];
    T value[items];
#pragma unroll
    for (int k = 0; k < items; ++k) {
        const std::int64_t i = first + k * coo_threads;
        row[k] = i < nnz ? __ldcs(row_idx + i) : 0;
        column[k] = i < nnz ? __ldcs(col_idx + i) : 0;
        value[k] = i < nnz ? __ldcs(values + i) : T{0};
    }
#pragma unroll
    for (int k = 0; k < items; ++k) {
        if (first + k * coo_threads < nnz) {
            atomicAdd(y + (row[k] - first_row), alpha * (value[k] * __ldg(x + column[k])));
        }
    }
}

template <class T>
class CooAtomic final : public SpmvOperator<T> {
public:
    explicit CooAtomic(const CooShard<T>& shard) : shard_(shard), tiles_(tiles_of(shard.nnz)) {}

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        cuda::scale(shard_.rows, beta, y, context.compute_units, stream);
        if (tiles_ == 0) {
            return;
        }
        coo_atomic_kernel<<<static_cast<unsigned>(tiles_), coo_threads, 0, stream>>>(
            shard_.nnz, shard_.first_row, shard_.row_idx, shard_.col_idx, shard_.values, alpha, x, y);
        RMSP_CUDA_CHECK_LAUNCH("coo-atomic");
    }

private:
    CooShard<T> shard_;
    std::int64_t tiles_;
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_atomic(const CooShard<T>& shard, const Context& /*context*/)
{
    return std::make_unique<CooAtomic<T>>(shard);
}

#define RMSP_INSTANTIATE(T) \
    template std::unique_ptr<SpmvOperator<T>> prepare_coo_atomic(const CooShard<T>&, const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels
