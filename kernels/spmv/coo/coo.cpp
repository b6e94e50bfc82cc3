#include <algorithm>
#include <vector>

#include <kernels/spmv/common/reference_sums.hpp>
#include <kernels/spmv/common/scatter.hpp>
#include <kernels/spmv/formats.hpp>

namespace rmsp::kernels {
namespace {

/// The definition, one entry after the other.
template <class T>
class CooReference final : public ReferenceSums<T> {
public:
    explicit CooReference(const CooShard<T>& shard) : ReferenceSums<T>(shard.rows), shard_(shard) {}

private:
    using Sum = typename ReferenceSums<T>::Sum;

    void add_entries(const T* x, Sum* sums) const override
    {
        for (std::int64_t i = 0; i < shard_.nnz; ++i) {
            sums[shard_.row_idx[i] - shard_.first_row] += Sum{shard_.values[i]} * Sum{x[shard_.col_idx[i]]};
        }
    }

    CooShard<T> shard_;
};

template <class T>
class CooScatter final : public Scatter<T> {
public:
    CooScatter(const CooShard<T>& shard, int threads)
        : Scatter<T>(shard.rows, shard.nnz, shard.row_idx, shard.first_row, threads), shard_(shard)
    {
    }

private:
    void add_range(std::int64_t begin, std::int64_t end, const T* x, T* partial, std::int64_t first_row) const override
    {
        const std::int64_t origin = shard_.first_row + first_row;
        for (std::int64_t i = begin; i < end; ++i) {
            partial[shard_.row_idx[i] - origin] += shard_.values[i] * x[shard_.col_idx[i]];
        }
    }

    CooShard<T> shard_;
};

/// Entries by row: a thread writes the rows that begin in its range, as the devices do with pCOO, and what it found of
/// the row that began before is added afterwards, in order.
template <class T>
class CooRows final : public SpmvOperator<T> {
public:
    CooRows(const CooShard<T>& shard, int threads)
        : shard_(shard), carries_(static_cast<std::size_t>(std::max(threads, 1)))
    {
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& /*context*/) override
    {
        const int ranges = static_cast<int>(carries_.size());
#pragma omp parallel for num_threads(ranges) schedule(static, 1)
        for (int k = 0; k < ranges; ++k) {
            apply_range(k, alpha, x, beta, y);
        }
        for (const Carry& carry : carries_) {
            if (carry.row >= 0) {
                y[carry.row] += alpha * carry.sum;
            }
        }
    }

    std::int64_t workspace_bytes() const override { return static_cast<std::int64_t>(carries_.size() * sizeof(Carry)); }

private:
    struct Carry {
        std::int64_t row = -1;
        T sum = 0;
    };

    std::int64_t row_of(std::int64_t i) const { return shard_.row_idx[i] - shard_.first_row; }
    std::int64_t first_entry(std::int64_t k) const
    {
        return core::even_cut(shard_.nnz, static_cast<std::int64_t>(carries_.size()), k);
    }
    /// The first row that begins in range k or behind it.
    std::int64_t first_row(std::int64_t k) const
    {
        const std::int64_t begin = first_entry(k);
        return k == static_cast<std::int64_t>(carries_.size()) ? shard_.rows : begin == 0 ? 0 : row_of(begin - 1) + 1;
    }

    /// Sums the entries of one row from i on, which it moves behind them.
    T sum_row(std::int64_t row, std::int64_t& i, std::int64_t end, const T* x) const
    {
        T sum = 0;
        for (; i < end && row_of(i) == row; ++i) {
            sum += shard_.values[i] * x[shard_.col_idx[i]];
        }
        return sum;
    }

    void apply_range(int k, T alpha, const T* x, T beta, T* y)
    {
        std::int64_t i = first_entry(k);
        const std::int64_t end = first_entry(k + 1);
        const std::int64_t first = first_row(k);
        Carry carry;
        if (i < end && row_of(i) < first) {
            carry.row = row_of(i);
            carry.sum = sum_row(carry.row, i, end, x);
        }
        carries_[static_cast<std::size_t>(k)] = carry;
        const std::int64_t end_row = first_row(k + 1);
        for (std::int64_t row = first; row < end_row; ++row) {
            const T sum = sum_row(row, i, end, x);
            y[row] = beta == T{0} ? alpha * sum : alpha * sum + beta * y[row];
        }
    }

    CooShard<T> shard_;
    std::vector<Carry> carries_;  ///< one for each range
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_reference(const CooShard<T>& shard, const Context& /*context*/)
{
    return std::make_unique<CooReference<T>>(shard);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_openmp(const CooShard<T>& shard, const Context& context)
{
    return std::make_unique<CooRows<T>>(shard, context.threads);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_scatter(const CooShard<T>& shard, const Context& context)
{
    return std::make_unique<CooScatter<T>>(shard, context.threads);
}

#define RMSP_INSTANTIATE(T)                                                                              \
    template std::unique_ptr<SpmvOperator<T>> prepare_coo_reference(const CooShard<T>&, const Context&); \
    template std::unique_ptr<SpmvOperator<T>> prepare_coo_openmp(const CooShard<T>&, const Context&);    \
    template std::unique_ptr<SpmvOperator<T>> prepare_coo_scatter(const CooShard<T>&, const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels
