#include <string>

#include <cusparse.h>
#include <kernels/cuda_check.cuh>
#include <kernels/spmv/spmv.hpp>
#include <kernels/support/support.hpp>

namespace rmsp::kernels {
namespace {

void check(cusparseStatus_t status, const char* call,
           const std::source_location& where = std::source_location::current())
{
    if (status == CUSPARSE_STATUS_SUCCESS) {
        return;
    }
    static_cast<void>(cudaGetLastError());
    const bool memory = status == CUSPARSE_STATUS_ALLOC_FAILED || status == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES;
    throw Error(memory ? ErrorCode::out_of_memory : ErrorCode::device,
                std::string(call) + " failed at " + cuda::file_line(where) + ": " + cusparseGetErrorName(status) +
                    ", " + cusparseGetErrorString(status),
                where);
}
#define RMSP_CUSPARSE_CHECK(call) check((call), #call)

/// Owns one cuSPARSE handle or descriptor.
template <class Handle, auto Destroy>
class Owned {
public:
    Owned() = default;
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned()
    {
        if (handle_ != nullptr) {
            static_cast<void>(Destroy(handle_));
        }
    }
    Handle* address() { return &handle_; }
    Handle get() const { return handle_; }

private:
    Handle handle_ = nullptr;
};

template <class T>
constexpr cudaDataType data_type = sizeof(T) == sizeof(float) ? CUDA_R_32F : CUDA_R_64F;

template <class T>
__global__ void scale_kernel(T* y, std::int64_t n, T beta)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = beta == T{0} ? T{0} : beta * y[i];
    }
}

template <class T>
class CuSparse final : public SpmvOperator<T> {
public:
    CuSparse(const CsrShard<T>& shard, cusparseSpMVAlg_t algorithm, const Context& context)
        : shard_(shard), algorithm_(algorithm)
    {
        if (shard.rows == 0 || shard.nnz == 0) {
            return;  // apply() does not ask cuSPARSE
        }
        const void* row_ptr = shard.row_ptr.data();
        if (shard.row_ptr.type() == IndexType::i64) {
            const std::size_t n = static_cast<std::size_t>(shard.rows) + 1;
            row_ptr_ = DeviceArray<std::int32_t>(*context.memory, n);
            narrow_indices(static_cast<const std::int64_t*>(row_ptr), shard.rows + 1, row_ptr_.data(), context);
            row_ptr = row_ptr_.data();
        }
        RMSP_CUSPARSE_CHECK(cusparseCreate(handle_.address()));
        RMSP_CUSPARSE_CHECK(cusparseSetStream(handle_.get(), static_cast<cudaStream_t>(context.stream)));
        RMSP_CUSPARSE_CHECK(cusparseCreateCsr(matrix_.address(), shard.rows, shard.cols, shard.nnz,
                                              const_cast<void*>(row_ptr), const_cast<std::int32_t*>(shard.col_idx),
                                              const_cast<T*>(shard.values), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                              CUSPARSE_INDEX_BASE_ZERO, data_type<T>));
        // apply() sets the vectors; until then any address that is not null will do.
        RMSP_CUSPARSE_CHECK(cusparseCreateDnVec(x_.address(), shard.cols, const_cast<T*>(shard.values), data_type<T>));
        RMSP_CUSPARSE_CHECK(cusparseCreateDnVec(y_.address(), shard.rows, const_cast<T*>(shard.values), data_type<T>));
        const T one = 1;
        const T zero = 0;
        std::size_t bytes = 0;
        RMSP_CUSPARSE_CHECK(cusparseSpMV_bufferSize(handle_.get(), CUSPARSE_OPERATION_NON_TRANSPOSE, &one,
                                                    matrix_.get(), x_.get(), &zero, y_.get(), data_type<T>, algorithm_,
                                                    &bytes));
        buffer_ = DeviceArray<std::byte>(*context.memory, bytes);
        RMSP_CUSPARSE_CHECK(cusparseSpMV_preprocess(handle_.get(), CUSPARSE_OPERATION_NON_TRANSPOSE, &one,
                                                    matrix_.get(), x_.get(), &zero, y_.get(), data_type<T>, algorithm_,
                                                    buffer_.data()));
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        if (shard_.rows == 0) {
            return;
        }
        if (shard_.nnz == 0) {
            constexpr int threads = 256;
            scale_kernel<<<static_cast<unsigned>((shard_.rows + threads - 1) / threads), threads, 0, stream>>>(
                y, shard_.rows, beta);
            RMSP_CUDA_CHECK_LAUNCH("scale_kernel");
            return;
        }
        RMSP_CUSPARSE_CHECK(cusparseSetStream(handle_.get(), stream));
        RMSP_CUSPARSE_CHECK(cusparseDnVecSetValues(x_.get(), const_cast<T*>(x)));
        RMSP_CUSPARSE_CHECK(cusparseDnVecSetValues(y_.get(), y));
        RMSP_CUSPARSE_CHECK(cusparseSpMV(handle_.get(), CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha, matrix_.get(),
                                         x_.get(), &beta, y_.get(), data_type<T>, algorithm_, buffer_.data()));
    }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(buffer_.size() + row_ptr_.size() * sizeof(std::int32_t));
    }

private:
    CsrShard<T> shard_;
    cusparseSpMVAlg_t algorithm_;
    DeviceArray<std::int32_t> row_ptr_;  ///< only where the shard's are 64-bit
    DeviceArray<std::byte> buffer_;
    Owned<cusparseHandle_t, cusparseDestroy> handle_;
    Owned<cusparseSpMatDescr_t, cusparseDestroySpMat> matrix_;
    Owned<cusparseDnVecDescr_t, cusparseDestroyDnVec> x_;
    Owned<cusparseDnVecDescr_t, cusparseDestroyDnVec> y_;
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_alg1(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                       const Context& context)
{
    return std::make_unique<CuSparse<T>>(shard, CUSPARSE_SPMV_CSR_ALG1, context);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_alg2(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                       const Context& context)
{
    return std::make_unique<CuSparse<T>>(shard, CUSPARSE_SPMV_CSR_ALG2, context);
}

template std::unique_ptr<SpmvOperator<float>> prepare_cusparse_alg1(const CsrShard<float>&, const RowStatistics&,
                                                                    const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_cusparse_alg1(const CsrShard<double>&, const RowStatistics&,
                                                                     const Context&);
template std::unique_ptr<SpmvOperator<float>> prepare_cusparse_alg2(const CsrShard<float>&, const RowStatistics&,
                                                                    const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_cusparse_alg2(const CsrShard<double>&, const RowStatistics&,
                                                                     const Context&);

}  // namespace rmsp::kernels
