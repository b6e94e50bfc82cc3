#include <algorithm>

#include <kernels/spmv/common/reference_sums.hpp>
#include <kernels/spmv/common/scatter.hpp>
#include <kernels/spmv/formats.hpp>

namespace rmsp::kernels {
namespace {

/// The definition, one column after the other.
template <class T>
class CscReference final : public ReferenceSums<T> {
public:
    explicit CscReference(const CscShard<T>& shard) : ReferenceSums<T>(shard.rows), shard_(shard) {}

private:
    using Sum = typename ReferenceSums<T>::Sum;

    void add_entries(const T* x, Sum* sums) const override
    {
        for (std::int64_t col = 0; col < shard_.cols; ++col) {
            for (std::int64_t i = shard_.col_ptr[col]; i < shard_.col_ptr[col + 1]; ++i) {
                sums[shard_.row_idx[i] - shard_.first_row] += Sum{shard_.values[i]} * Sum{x[col]};
            }
        }
    }

    CscShard<T> shard_;
};

template <class T>
class CscScatter final : public Scatter<T> {
public:
    CscScatter(const CscShard<T>& shard, int threads)
        : Scatter<T>(shard.rows, shard.nnz, shard.row_idx, shard.first_row, threads), shard_(shard)
    {
    }

private:
    void add_range(std::int64_t begin, std::int64_t end, const T* x, T* partial, std::int64_t first_row) const override
    {
        if (begin == end) {
            return;
        }
        const std::int64_t origin = shard_.first_row + first_row;
        shard_.col_ptr.visit([&](const auto* col_ptr) {
            std::int64_t col = std::upper_bound(col_ptr, col_ptr + shard_.cols + 1, begin) - col_ptr - 1;
            for (std::int64_t i = begin; i < end; ++col) {
                const std::int64_t stop = std::min<std::int64_t>(col_ptr[col + 1], end);
                if (i < stop) {
                    const T factor = x[col];
                    for (; i < stop; ++i) {
                        partial[shard_.row_idx[i] - origin] += shard_.values[i] * factor;
                    }
                }
            }
        });
    }

    CscShard<T> shard_;
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_csc_reference(const CscShard<T>& shard, const Context& /*context*/)
{
    return std::make_unique<CscReference<T>>(shard);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_csc_openmp(const CscShard<T>& shard, const Context& context)
{
    return std::make_unique<CscScatter<T>>(shard, context.threads);
}

#define RMSP_INSTANTIATE(T)                                                                              \
    template std::unique_ptr<SpmvOperator<T>> prepare_csc_reference(const CscShard<T>&, const Context&); \
    template std::unique_ptr<SpmvOperator<T>> prepare_csc_openmp(const CscShard<T>&, const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels
