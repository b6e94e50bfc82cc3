#include <kernels/vendor/cusparse_operator.cuh>

namespace rmsp::kernels {

#if RMSP_HAVE_SPMVOP
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_csr_alg1(const CsrShard<T>&, const RowStatistics&, const Context&);

namespace {

/// The shard's own arrays by cusparseSpMVOp(), with no epilogue but its own.
template <class T>
class CuSparseOp final : public cusparse::Operator<T> {
public:
    /// \throws Error(usage) if it does not take such a matrix
    CuSparseOp(const CsrShard<T>& shard, cusparseSpMVOpAlg_t algorithm, const Context& context)
        : cusparse::Operator<T>(shard, context), algorithm_(algorithm)
    {
        if (this->empty()) {
            return;
        }
        this->make_csr();
        std::size_t bytes = 0;
        check_supported(cusparse::op_functions().cusparseSpMVOp_bufferSize(
                            this->handle_.get(), CUSPARSE_OPERATION_NON_TRANSPOSE, this->matrix_.get(), this->x_.get(),
                            this->y_.get(), this->y_.get(), cusparse::data_type<T>, algorithm_, &bytes),
                        "cusparseSpMVOp_bufferSize");
        this->buffer_ = DeviceArray<std::byte>(*context.memory, bytes);
        make_plan();
    }

    /// By cusparseSpMV() where x or y does not begin as cusparseSpMVOp() wants it to.
    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        constexpr std::uintptr_t alignment = 16;
        const auto is_aligned = [](const T* p) { return reinterpret_cast<std::uintptr_t>(p) % alignment == 0; };
        if (this->empty() || (is_aligned(x) && is_aligned(y))) {
            cusparse::Operator<T>::apply(alpha, x, beta, y, context);
            return;
        }
        if (!unaligned_) {
            unaligned_ = prepare_cusparse_csr_alg1<T>(this->shard_, {}, context);
        }
        unaligned_->apply(alpha, x, beta, y, context);
    }

    /// What the plan keeps of the values is not said, so it is made anew.
    void update_values(const Context& context) override
    {
        if (this->empty()) {
            return;
        }
        RMSP_CUSPARSE_CHECK(cusparseSetStream(this->handle_.get(), static_cast<cudaStream_t>(context.stream)));
        make_plan();
        if (unaligned_) {
            unaligned_->update_values(context);
        }
    }

private:
    void multiply(T alpha, T beta) override
    {
        cusparse::check(cusparse::op_functions().cusparseSpMVOp(this->handle_.get(), plan_.get(), &alpha, &beta,
                                                                this->x_.get(), this->y_.get(), this->y_.get()),
                        "cusparseSpMVOp");
    }

    void make_plan()
    {
        plan_.reset();
        check_supported(cusparse::op_functions().cusparseSpMVOp_createDescr(
                            this->handle_.get(), descriptor_.renew(), CUSPARSE_OPERATION_NON_TRANSPOSE,
                            this->matrix_.get(), this->x_.get(), this->y_.get(), this->y_.get(), cusparse::data_type<T>,
                            algorithm_, this->buffer_.data()),
                        "cusparseSpMVOp_createDescr");
        check_supported(cusparse::op_functions().cusparseSpMVOp_createPlan(this->handle_.get(), descriptor_.get(),
                                                                           plan_.renew(), nullptr, 0),
                        "cusparseSpMVOp_createPlan");
    }

    void check_supported(cusparseStatus_t status, const char* call) const
    {
        if (status == CUSPARSE_STATUS_NOT_SUPPORTED) {
            throw Error(ErrorCode::usage,
                        std::string(call) + " does not support " + (sizeof(T) == sizeof(float) ? "floats" : "doubles") +
                            " of " + std::to_string(this->shard_.rows) + " x " + std::to_string(this->shard_.cols) +
                            " with " + std::to_string(this->shard_.nnz) + " nonzeros");
        }
        cusparse::check(status, call);
    }

    cusparseSpMVOpAlg_t algorithm_;
    std::unique_ptr<SpmvOperator<T>> unaligned_;  ///< once it was needed
    cusparse::Owned<cusparseSpMVOpDescr_t, &cusparse::OpFunctions::cusparseSpMVOp_destroyDescr> descriptor_;
    cusparse::Owned<cusparseSpMVOpPlan_t, &cusparse::OpFunctions::cusparseSpMVOp_destroyPlan> plan_;
};

}  // namespace

#define RMSP_MAKE_OP(algorithm) return std::make_unique<CuSparseOp<T>>(shard, CUSPARSE_SPMVOP_##algorithm, context);
#else
#define RMSP_MAKE_OP(algorithm) throw NotCompiled("SpMVOp of cuSPARSE 12.8 and later");
#endif

#define RMSP_PREPARE(name, algorithm)                                                                              \
    template <class T>                                                                                             \
    std::unique_ptr<SpmvOperator<T>> prepare_cusparse_spmvop_##name(                                               \
        [[maybe_unused]] const CsrShard<T>& shard, const RowStatistics&, [[maybe_unused]] const Context& context){ \
        RMSP_MAKE_OP(algorithm)} RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_cusparse_spmvop_##name)

RMSP_PREPARE(alg1, ALG1)
RMSP_PREPARE(alg2, ALG2)
#undef RMSP_PREPARE
#undef RMSP_MAKE_OP

}  // namespace rmsp::kernels
