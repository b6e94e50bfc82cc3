#include <limits>

#include <kernels/spmv/csr_nnz_split/prepare.hpp>
#include <kernels/spmv/formats.hpp>
#include <kernels/steps/convert/convert.hpp>

namespace rmsp::kernels {
namespace {

/// The shard as CSR, made once: a stable radix sort by row, so entries of a row keep their order, and csr-nnz-split on
/// the result. Entries that are sorted by row need only row pointers. Offset holds nnz.
template <class T, class Offset>
class ToCsr final : public SpmvOperator<T> {
public:
    ToCsr(const CscShard<T>& shard, const Context& context)
    {
        CsrShard<T> csr =
            sort(shard.rows, shard.cols, shard.nnz, shard.first_row, shard.row_idx, shard.values, context);
        find_lines(shard.nnz, order_.from.data(), 0, shard.cols, shard.col_ptr, col_idx_.data(), context);
        finish(csr, context);
    }

    ToCsr(const CooShard<T>& shard, const Context& context)
    {
        if (shard.order == CooOrder::by_row) {
            order_.pointers = DeviceArray<Offset>(*context.memory, static_cast<std::size_t>(shard.rows) + 1);
            point_at_lines(shard.nnz, shard.row_idx, shard.first_row, shard.rows, order_.pointers.data(), context);
            finish({shard.rows, shard.cols, shard.nnz, IndexView(order_.pointers.data()), shard.col_idx, shard.values},
                   context);
            return;
        }
        CsrShard<T> csr =
            sort(shard.rows, shard.cols, shard.nnz, shard.first_row, shard.row_idx, shard.values, context);
        take_from(shard.nnz, order_.from.data(), shard.col_idx, col_idx_.data(), context);
        finish(csr, context);
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        csr_operator_->apply(alpha, x, beta, y, context);
    }

    void update_values(const Context& context) override
    {
        take_from(static_cast<std::int64_t>(order_.from.size()), order_.from.data(), source_, values_.data(), context);
        csr_operator_->update_values(context);
    }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>((order_.pointers.size() + order_.from.size()) * sizeof(Offset) +
                                         col_idx_.size() * sizeof(std::int32_t) + values_.size() * sizeof(T)) +
               csr_operator_->workspace_bytes();
    }

private:
    /// Fills order_ and values_, and allocates col_idx_.
    CsrShard<T> sort(std::int64_t rows, std::int64_t cols, std::int64_t nnz, std::int64_t first_row,
                     const std::int32_t* row_idx, const T* values, const Context& context)
    {
        order_ = sort_by_line<Offset>(nnz, row_idx, first_row, rows, context);
        col_idx_ = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(nnz));
        values_ = DeviceArray<T>(*context.memory, static_cast<std::size_t>(nnz));
        source_ = values;
        take_from(nnz, order_.from.data(), source_, values_.data(), context);
        return {rows, cols, nnz, IndexView(order_.pointers.data()), col_idx_.data(), values_.data()};
    }

    void finish(const CsrShard<T>& csr, const Context& context)
    {
        RowStatistics rows;
        rows.rows = csr.rows;
        rows.nnz = csr.nnz;
        rows.longest_row = csr.nnz;  // an upper bound is all that csr-nnz-split asks for
        rows.mean = csr.rows > 0 ? static_cast<double>(csr.nnz) / static_cast<double>(csr.rows) : 0;
        csr_operator_ = prepare_nnz_split(csr, rows, context);
    }

    LineOrder<Offset> order_;  ///< of the copy; `from` is empty if there is none
    DeviceArray<std::int32_t> col_idx_;
    DeviceArray<T> values_;
    const T* source_ = nullptr;
    std::unique_ptr<SpmvOperator<T>> csr_operator_;
};

template <class T, class Shard>
std::unique_ptr<SpmvOperator<T>> prepare(const Shard& shard, const Context& context)
{
    if (shard.nnz <= std::numeric_limits<std::int32_t>::max()) {
        return std::make_unique<ToCsr<T, std::int32_t>>(shard, context);
    }
    return std::make_unique<ToCsr<T, std::int64_t>>(shard, context);
}

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_csc_to_csr(const CscShard<T>& shard, const Context& context)
{
    return prepare<T>(shard, context);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_to_csr(const CooShard<T>& shard, const Context& context)
{
    return prepare<T>(shard, context);
}

#define RMSP_INSTANTIATE(T)                                                                           \
    template std::unique_ptr<SpmvOperator<T>> prepare_csc_to_csr(const CscShard<T>&, const Context&); \
    template std::unique_ptr<SpmvOperator<T>> prepare_coo_to_csr(const CooShard<T>&, const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels
