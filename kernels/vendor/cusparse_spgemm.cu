#include <array>
#include <string>
#include <vector>

#include <kernels/spgemm/spgemm.hpp>
#include <kernels/steps/support/support.hpp>
#include <kernels/vendor/cusparse.cuh>

namespace rmsp::kernels {
namespace {

using namespace cusparse;

using Handle = Owned<cusparseHandle_t, &Functions::cusparseDestroy>;
using Matrix = Owned<cusparseSpMatDescr_t, &Functions::cusparseDestroySpMat>;
using Product = Owned<cusparseSpGEMMDescr_t, &Functions::cusparseSpGEMM_destroyDescr>;

constexpr cusparseOperation_t as_it_is = CUSPARSE_OPERATION_NON_TRANSPOSE;

__global__ void widen_kernel(const std::int32_t* __restrict__ in, std::int64_t n, std::int64_t* __restrict__ out)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = in[i];
    }
}

/// What the operators of cuSPARSE share: descriptors of A, B and C, and row pointers of both widths.
template <class T>
class CuSparseBase : public SpgemmOperator<T> {
public:
    CuSparseBase(const CsrShard<T>& a, const CsrShard<T>& b, const SpgemmOptions& options, const Context& context)
        : a_(a), b_(b)
    {
        if (options.accumulator != "auto") {
            throw Error(ErrorCode::usage,
                        "SpGEMM through cuSPARSE has no accumulator \"" + options.accumulator + "\"; there is: auto");
        }
        Memory& memory = *context.memory;
        const auto stream = static_cast<cudaStream_t>(context.stream);
        row_ptr_ = DeviceArray<std::int64_t>(memory, static_cast<std::size_t>(a.rows + 1));
        RMSP_CUDA_CHECK(cudaMemsetAsync(row_ptr_.data(), 0, row_ptr_.size() * sizeof(std::int64_t), stream));
        count(memory, stream, context);
        if (products_ == 0) {
            return;
        }
        c_row_ptr_ = DeviceArray<std::int32_t>(memory, static_cast<std::size_t>(a.rows + 1));
        RMSP_CUSPARSE_CHECK(cusparseCreate(handle_.renew()));
        RMSP_CUSPARSE_CHECK(cusparseSetStream(handle_.get(), stream));
        create(a_, a_row_ptr_, a_matrix_, context);
        create(b_, b_row_ptr_, b_matrix_, context);
    }

    std::int64_t nnz() const override { return nnz_; }
    std::int64_t products() const override { return products_; }
    const std::int64_t* row_ptr() const override { return row_ptr_.data(); }
    std::int64_t workspace_bytes() const override
    {
        std::size_t bytes = row_ptr_.size() * sizeof(std::int64_t) +
                            (c_row_ptr_.size() + a_row_ptr_.size() + b_row_ptr_.size()) * sizeof(std::int32_t);
        for (const auto& buffer : buffers_) {
            bytes += buffer.size();
        }
        return static_cast<std::int64_t>(bytes);
    }

protected:
    void create_c()
    {
        RMSP_CUSPARSE_CHECK(cusparseCreateCsr(c_matrix_.renew(), a_.rows, b_.cols, 0, c_row_ptr_.data(), nullptr,
                                              nullptr, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                              data_type<T>));
    }
    void set_values(const T* a_values, const T* b_values, cudaStream_t stream)
    {
        RMSP_CUSPARSE_CHECK(cusparseSetStream(handle_.get(), stream));
        RMSP_CUSPARSE_CHECK(cusparseSpMatSetValues(a_matrix_.get(), const_cast<T*>(a_values)));
        RMSP_CUSPARSE_CHECK(cusparseSpMatSetValues(b_matrix_.get(), const_cast<T*>(b_values)));
    }
    void set_c(const std::int32_t* col_idx, T* values)
    {
        RMSP_CUSPARSE_CHECK(
            cusparseCsrSetPointers(c_matrix_.get(), c_row_ptr_.data(), const_cast<std::int32_t*>(col_idx), values));
    }
    void read_nnz()
    {
        std::int64_t rows = 0;
        std::int64_t cols = 0;
        RMSP_CUSPARSE_CHECK(cusparseSpMatGetSize(c_matrix_.get(), &rows, &cols, &nnz_));
    }
    void widen_row_ptr(cudaStream_t stream)
    {
        constexpr int threads = 256;
        const std::int64_t n = a_.rows + 1;
        widen_kernel<<<static_cast<unsigned>((n + threads - 1) / threads), threads, 0, stream>>>(c_row_ptr_.data(), n,
                                                                                                 row_ptr_.data());
        RMSP_CUDA_CHECK_LAUNCH("widen_kernel");
    }
    /// Buffer i of at least that size; what it held is lost if it grows.
    void* buffer(int i, std::size_t bytes, Memory& memory)
    {
        DeviceArray<std::byte>& held = buffers_[static_cast<std::size_t>(i)];
        if (bytes > held.size()) {
            held.reset();
            held = DeviceArray<std::byte>(memory, bytes);
        }
        return held.data();
    }

    CsrShard<T> a_;
    CsrShard<T> b_;
    std::int64_t nnz_ = 0;
    std::int64_t products_ = 0;
    DeviceArray<std::int64_t> row_ptr_;
    DeviceArray<std::int32_t> c_row_ptr_;
    DeviceArray<std::int32_t> a_row_ptr_;  ///< only where the shard's are 64-bit
    DeviceArray<std::int32_t> b_row_ptr_;
    std::array<DeviceArray<std::byte>, 5> buffers_;
    Handle handle_;
    Matrix a_matrix_;
    Matrix b_matrix_;
    Matrix c_matrix_;

private:
    void create(const CsrShard<T>& shard, DeviceArray<std::int32_t>& narrow, Matrix& matrix, const Context& context)
    {
        const void* row_ptr = shard.row_ptr.data();
        if (shard.row_ptr.type() == IndexType::i64) {
            narrow = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(shard.rows + 1));
            narrow_indices(static_cast<const std::int64_t*>(row_ptr), shard.rows + 1, narrow.data(), context);
            row_ptr = narrow.data();
        }
        RMSP_CUSPARSE_CHECK(cusparseCreateCsr(matrix.renew(), shard.rows, shard.cols, shard.nnz,
                                              const_cast<void*>(row_ptr), const_cast<std::int32_t*>(shard.col_idx),
                                              const_cast<T*>(shard.values), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                              CUSPARSE_INDEX_BASE_ZERO, data_type<T>));
    }

    void count(Memory& memory, cudaStream_t stream, const Context& context)
    {
        if (a_.nnz == 0 || b_.nnz == 0) {
            return;
        }
        const auto rows = static_cast<std::size_t>(a_.rows);
        const DeviceArray<std::int64_t> of_rows(memory, rows);
        count_products(a_, b_, of_rows.data(), context);
        std::vector<std::int64_t> host(rows);
        RMSP_CUDA_CHECK(
            cudaMemcpyAsync(host.data(), of_rows.data(), rows * sizeof(std::int64_t), cudaMemcpyDeviceToHost, stream));
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
        for (const std::int64_t products : host) {
            products_ += products;
        }
    }
};

/// cusparseSpGEMM_*: structure and values together, so that prepare() computes a product to count it, with whatever A's
/// and B's values are, and each fill() does it all again.
template <class T>
class CuSparseSpgemm final : public CuSparseBase<T> {
public:
    CuSparseSpgemm(const CsrShard<T>& a, const CsrShard<T>& b, const SpgemmOptions& options,
                   cusparseSpGEMMAlg_t algorithm, const Context& context)
        : CuSparseBase<T>(a, b, options, context), algorithm_(algorithm), memory_(context.memory)
    {
        if (this->products_ == 0) {
            return;
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        const T one = 1;
        this->set_values(a.values, b.values, stream);
        compute(one);
        const auto n = static_cast<std::size_t>(this->nnz_);
        const DeviceArray<std::int32_t> columns(*memory_, n);
        const DeviceArray<T> values(*memory_, n);
        copy(one, columns.data(), values.data());
        this->widen_row_ptr(stream);
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
    }

    void fill(T alpha, const T* a_values, const T* b_values, std::int32_t* col_idx, T* values,
              const Context& context) override
    {
        if (this->products_ > 0) {
            this->set_values(a_values, b_values, static_cast<cudaStream_t>(context.stream));
            compute(alpha);
            copy(alpha, col_idx, values);
        }
    }
    void numeric(T alpha, const T* a_values, const T* b_values, const std::int32_t* col_idx, T* values,
                 const Context& context) override
    {
        fill(alpha, a_values, b_values, const_cast<std::int32_t*>(col_idx), values, context);
    }

private:
    void compute(T alpha)
    {
        const T zero = 0;
        const auto handle = this->handle_.get();
        this->create_c();
        RMSP_CUSPARSE_CHECK(cusparseSpGEMM_createDescr(product_.renew()));
        const auto a = this->a_matrix_.get();
        const auto b = this->b_matrix_.get();
        const auto c = this->c_matrix_.get();
        std::size_t bytes = 0;
        void* held = nullptr;
        for (int round = 0; round < 2; ++round) {
            RMSP_CUSPARSE_CHECK(cusparseSpGEMM_workEstimation(handle, as_it_is, as_it_is, &alpha, a, b, &zero, c,
                                                              data_type<T>, algorithm_, product_.get(), &bytes, held));
            held = round == 0 ? this->buffer(0, bytes, *memory_) : held;
        }
        std::size_t compute_bytes = 0;
        if (algorithm_ == CUSPARSE_SPGEMM_ALG1) {
            RMSP_CUSPARSE_CHECK(cusparseSpGEMM_compute(handle, as_it_is, as_it_is, &alpha, a, b, &zero, c, data_type<T>,
                                                       algorithm_, product_.get(), &compute_bytes, nullptr));
        } else {
            constexpr float part = 0.2f;  // of the products at once; of ALG3 only
            void* estimate = nullptr;
            for (int round = 0; round < 2; ++round) {
                RMSP_CUSPARSE_CHECK(cusparseSpGEMM_estimateMemory(
                    handle, as_it_is, as_it_is, &alpha, a, b, &zero, c, data_type<T>, algorithm_, product_.get(), part,
                    &bytes, estimate, round == 0 ? nullptr : &compute_bytes));
                estimate = round == 0 ? this->buffer(1, bytes, *memory_) : estimate;
            }
        }
        void* const work = this->buffer(2, compute_bytes, *memory_);
        RMSP_CUSPARSE_CHECK(cusparseSpGEMM_compute(handle, as_it_is, as_it_is, &alpha, a, b, &zero, c, data_type<T>,
                                                   algorithm_, product_.get(), &compute_bytes, work));
        this->read_nnz();
    }

    void copy(T alpha, std::int32_t* col_idx, T* values)
    {
        const T zero = 0;
        this->set_c(col_idx, values);
        RMSP_CUSPARSE_CHECK(cusparseSpGEMM_copy(this->handle_.get(), as_it_is, as_it_is, &alpha, this->a_matrix_.get(),
                                                this->b_matrix_.get(), &zero, this->c_matrix_.get(), data_type<T>,
                                                algorithm_, product_.get()));
    }

    cusparseSpGEMMAlg_t algorithm_;
    Memory* memory_;
    Product product_;
};

/// cusparseSpGEMMreuse_*: structure once, values again and again.
template <class T>
class CuSparseReuse final : public CuSparseBase<T> {
public:
    CuSparseReuse(const CsrShard<T>& a, const CsrShard<T>& b, const SpgemmOptions& options, const Context& context)
        : CuSparseBase<T>(a, b, options, context)
    {
        if (this->products_ == 0) {
            return;
        }
        Memory& memory = *context.memory;
        const auto stream = static_cast<cudaStream_t>(context.stream);
        const auto handle = this->handle_.get();
        this->create_c();
        RMSP_CUSPARSE_CHECK(cusparseSpGEMM_createDescr(product_.renew()));
        const auto pa = this->a_matrix_.get();
        const auto pb = this->b_matrix_.get();
        const auto pc = this->c_matrix_.get();
        std::size_t bytes[5] = {};
        void* held[5] = {};
        for (int round = 0; round < 2; ++round) {
            RMSP_CUSPARSE_CHECK(cusparseSpGEMMreuse_workEstimation(handle, as_it_is, as_it_is, pa, pb, pc, algorithm,
                                                                   product_.get(), &bytes[0], held[0]));
            held[0] = round == 0 ? this->buffer(0, bytes[0], memory) : held[0];
        }
        for (int round = 0; round < 2; ++round) {
            RMSP_CUSPARSE_CHECK(cusparseSpGEMMreuse_nnz(handle, as_it_is, as_it_is, pa, pb, pc, algorithm,
                                                        product_.get(), &bytes[1], held[1], &bytes[2], held[2],
                                                        &bytes[3], held[3]));
            for (int i = 1; i < 4 && round == 0; ++i) {
                held[i] = this->buffer(i, bytes[i], memory);
            }
        }
        this->read_nnz();
        const auto n = static_cast<std::size_t>(this->nnz_);
        columns_ = DeviceArray<std::int32_t>(memory, n);
        const DeviceArray<T> values(memory, n);
        this->set_c(columns_.data(), values.data());
        for (int round = 0; round < 2; ++round) {
            RMSP_CUSPARSE_CHECK(cusparseSpGEMMreuse_copy(handle, as_it_is, as_it_is, pa, pb, pc, algorithm,
                                                         product_.get(), &bytes[4], held[4]));
            held[4] = round == 0 ? this->buffer(4, bytes[4], memory) : held[4];
        }
        this->widen_row_ptr(stream);
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
    }

    void fill(T alpha, const T* a_values, const T* b_values, std::int32_t* col_idx, T* values,
              const Context& context) override
    {
        if (this->products_ == 0) {
            return;
        }
        RMSP_CUDA_CHECK(cudaMemcpyAsync(col_idx, columns_.data(), columns_.size() * sizeof(std::int32_t),
                                        cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(context.stream)));
        numeric(alpha, a_values, b_values, col_idx, values, context);
    }
    void numeric(T alpha, const T* a_values, const T* b_values, const std::int32_t* col_idx, T* values,
                 const Context& context) override
    {
        if (this->products_ == 0) {
            return;
        }
        const T zero = 0;
        this->set_values(a_values, b_values, static_cast<cudaStream_t>(context.stream));
        this->set_c(col_idx, values);
        RMSP_CUSPARSE_CHECK(cusparseSpGEMMreuse_compute(
            this->handle_.get(), as_it_is, as_it_is, &alpha, this->a_matrix_.get(), this->b_matrix_.get(), &zero,
            this->c_matrix_.get(), data_type<T>, algorithm, product_.get()));
    }
    std::int64_t workspace_bytes() const override
    {
        return CuSparseBase<T>::workspace_bytes() + static_cast<std::int64_t>(columns_.size() * sizeof(std::int32_t));
    }

private:
    static constexpr cusparseSpGEMMAlg_t algorithm = CUSPARSE_SPGEMM_CSR_ALG_NONDETERMINITIC;
    Product product_;
    DeviceArray<std::int32_t> columns_;
};

}  // namespace

template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cusparse_alg1(const CsrShard<T>& a, const CsrShard<T>& b,
                                                                const SpgemmOptions& options, const Context& context)
{
    return std::make_unique<CuSparseSpgemm<T>>(a, b, options, CUSPARSE_SPGEMM_ALG1, context);
}
template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cusparse_alg2(const CsrShard<T>& a, const CsrShard<T>& b,
                                                                const SpgemmOptions& options, const Context& context)
{
    return std::make_unique<CuSparseSpgemm<T>>(a, b, options, CUSPARSE_SPGEMM_ALG2, context);
}
template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cusparse_alg3(const CsrShard<T>& a, const CsrShard<T>& b,
                                                                const SpgemmOptions& options, const Context& context)
{
    return std::make_unique<CuSparseSpgemm<T>>(a, b, options, CUSPARSE_SPGEMM_ALG3, context);
}
template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cusparse_reuse(const CsrShard<T>& a, const CsrShard<T>& b,
                                                                 const SpgemmOptions& options, const Context& context)
{
    return std::make_unique<CuSparseReuse<T>>(a, b, options, context);
}

#define RMSP_INSTANTIATE(T, prepare)                                                                                  \
    template std::unique_ptr<SpgemmOperator<T>> prepare(const CsrShard<T>&, const CsrShard<T>&, const SpgemmOptions&, \
                                                        const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE, prepare_spgemm_cusparse_alg1)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE, prepare_spgemm_cusparse_alg2)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE, prepare_spgemm_cusparse_alg3)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE, prepare_spgemm_cusparse_reuse)

}  // namespace rmsp::kernels
