#pragma once

#include <cstddef>
#include <cstdint>

#include <kernels/spmv/spmv.hpp>
#include <kernels/steps/support/support.hpp>
#include <kernels/vendor/cusparse.cuh>

namespace rmsp::kernels::cusparse {

template <class T>
__global__ void scale_kernel(T* y, std::int64_t n, T beta)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = beta == T{0} ? T{0} : beta * y[i];
    }
}

/// What cuSPARSE's ways to multiply have in common. A derived class makes `matrix_` and what it needs besides in its
/// constructor, unless empty().
template <class T>
class Operator : public SpmvOperator<T> {
public:
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
        multiply(alpha, beta);
    }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(buffer_.size() + row_ptr_.size() * sizeof(std::int32_t));
    }

protected:
    Operator(const CsrShard<T>& shard, const Context& context) : shard_(shard)
    {
        if (empty()) {
            return;
        }
        RMSP_CUSPARSE_CHECK(cusparseCreate(handle_.renew()));
        RMSP_CUSPARSE_CHECK(cusparseSetStream(handle_.get(), static_cast<cudaStream_t>(context.stream)));
        if (shard.row_ptr.type() == IndexType::i64) {
            row_ptr_ = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(shard.rows) + 1);
            narrow_indices(static_cast<const std::int64_t*>(shard.row_ptr.data()), shard.rows + 1, row_ptr_.data(),
                           context);
        }
        // apply() sets the vectors; until then any address that is not null will do.
        T* const any = const_cast<T*>(shard.values);
        RMSP_CUSPARSE_CHECK(cusparseCreateDnVec(x_.renew(), shard.cols, any, data_type<T>));
        RMSP_CUSPARSE_CHECK(cusparseCreateDnVec(y_.renew(), shard.rows, any, data_type<T>));
    }

    /// `y_` = alpha A `x_` + beta `y_`, queued on the handle's stream.
    virtual void multiply(T alpha, T beta) = 0;

    /// Whether apply() does without cuSPARSE, so that there is no matrix to make.
    bool empty() const { return shard_.rows == 0 || shard_.nnz == 0; }
    const std::int32_t* row_ptr() const
    {
        return row_ptr_.size() > 0 ? row_ptr_.data() : static_cast<const std::int32_t*>(shard_.row_ptr.data());
    }
    /// Lets `matrix_` be the shard's own arrays.
    void make_csr()
    {
        RMSP_CUSPARSE_CHECK(cusparseCreateCsr(
            matrix_.renew(), shard_.rows, shard_.cols, shard_.nnz, const_cast<std::int32_t*>(row_ptr()),
            const_cast<std::int32_t*>(shard_.col_idx), const_cast<T*>(shard_.values), CUSPARSE_INDEX_32I,
            CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, data_type<T>));
    }

    CsrShard<T> shard_;
    DeviceArray<std::int32_t> row_ptr_;  ///< only where the shard's are 64-bit
    DeviceArray<std::byte> buffer_;
    Owned<cusparseHandle_t, &Functions::cusparseDestroy> handle_;
    Owned<cusparseSpMatDescr_t, &Functions::cusparseDestroySpMat> matrix_;
    Owned<cusparseDnVecDescr_t, &Functions::cusparseDestroyDnVec> x_;
    Owned<cusparseDnVecDescr_t, &Functions::cusparseDestroyDnVec> y_;
};

}  // namespace rmsp::kernels::cusparse
