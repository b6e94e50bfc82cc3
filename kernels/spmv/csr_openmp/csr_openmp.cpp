#include <algorithm>
#include <type_traits>
#include <vector>

#include <kernels/spmv/common/csr_row.hpp>
#include <kernels/spmv/spmv.hpp>

#include "core/team.hpp"
#include "core/wide_vectors.hpp"

namespace rmsp::kernels {
namespace {

using namespace csr;

/// Where a thread's range begins. If that is inside a row, the chunk sums of this row are kept from partials[partial]
/// on.
struct Cut {
    std::int64_t row = 0;
    std::int64_t nonzero = 0;
    std::int64_t partial = -1;
};

/// V: float if T is double and all values are floats, which a copy then holds; otherwise T.
template <class T, class V>
class OpenMp final : public SpmvOperator<T> {
public:
    OpenMp(const CsrShard<T>& shard, const Context& context)
        : shard_(shard),
          ranges_(std::max(context.threads, 1)),
          wakes_team_(context.wakes_team),
          ahead_(fetches_ahead(shard.nnz * static_cast<std::int64_t>(sizeof(V) + sizeof(std::int32_t)) / ranges_)),
          wide_(core::has_wide_vectors())
    {
        cuts_.resize(static_cast<std::size_t>(ranges_) + 1);
        shard_.row_ptr.visit([&](const auto* row_ptr) { cut(row_ptr); });
        if constexpr (copied) {
            copy_ = DeviceArray<V>(*context.memory, static_cast<std::size_t>(shard.nnz));
            values_ = copy_.data();
            update_values(context);
        } else {
            values_ = shard.values;
        }
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& /*context*/) override
    {
        shard_.row_ptr.visit([&](const auto* row_ptr) {
            core::share(ranges_, wakes_team_, [&](int k) {
                apply_range(row_ptr, cuts_[static_cast<std::size_t>(k)], cuts_[static_cast<std::size_t>(k) + 1], alpha,
                            x, beta, y);
            });
            for (int k = 1; k < ranges_; ++k) {
                if (cuts_[k].partial >= 0 && cuts_[k].partial != cuts_[k - 1].partial) {
                    finish_row(row_ptr, cuts_[k], alpha, beta, y);
                }
            }
        });
    }

    /// By the threads that will read them, so that each part is placed near its own.
    void update_values(const Context& /*context*/) override
    {
        if constexpr (copied) {
#pragma omp parallel for num_threads(ranges_) schedule(static, 1)
            for (int k = 0; k < ranges_; ++k) {
                std::transform(shard_.values + cuts_[k].nonzero, shard_.values + cuts_[k + 1].nonzero,
                               copy_.data() + cuts_[k].nonzero, [](T value) { return static_cast<V>(value); });
            }
        }
    }

    std::int64_t format_bytes() const override
    {
        const std::int64_t pointer = shard_.row_ptr.type() == IndexType::i32 ? 4 : 8;
        return copied ? shard_.nnz * static_cast<std::int64_t>(sizeof(V) + sizeof(std::int32_t)) +
                            (shard_.rows + 1) * pointer
                      : -1;
    }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(partials_.size() * sizeof(T) + cuts_.size() * sizeof(Cut) +
                                         copy_.size() * sizeof(V));
    }

private:
    static constexpr bool copied = !std::is_same_v<T, V>;

    /// Ranges of equal nonzeros + row_weight * rows.
    template <class Index>
    void cut(const Index* row_ptr)
    {
        const auto weight_before = [&](std::int64_t row) { return std::int64_t{row_ptr[row]} + row_weight * row; };
        const std::int64_t total = shard_.nnz + row_weight * shard_.rows;
        std::int64_t partials = 0;
        for (int k = 1; k < ranges_; ++k) {
            const std::int64_t target = total / ranges_ * k + total % ranges_ * k / ranges_;
            std::int64_t row = 0;  // the last row with weight_before(row) <= target
            std::int64_t end = shard_.rows + 1;
            while (end - row > 1) {
                const std::int64_t middle = row + (end - row) / 2;
                (weight_before(middle) <= target ? row : end) = middle;
            }
            Cut& c = cuts_[k];
            c = {row, shard_.nnz, -1};
            if (row < shard_.rows) {
                const std::int64_t length = std::int64_t{row_ptr[row + 1]} - row_ptr[row];
                const std::int64_t into = std::min(target - weight_before(row), length) / chunk * chunk;
                if (into > 0 && into == length) {
                    c.row = row + 1;
                    c.nonzero = row_ptr[row + 1];
                } else {
                    c.nonzero = row_ptr[row] + into;
                }
                if (into > 0 && into < length) {
                    const Cut& previous = cuts_[k - 1];
                    if (previous.partial >= 0 && previous.row == row) {
                        c.partial = previous.partial;
                    } else {
                        c.partial = partials;
                        partials += (length + chunk - 1) / chunk;
                    }
                }
            }
        }
        cuts_[ranges_] = {shard_.rows, shard_.nnz, -1};
        partials_.resize(static_cast<std::size_t>(partials));
    }

    template <class Index>
    void apply_range(const Index* row_ptr, const Cut& begin, const Cut& end, T alpha, const T* x, T beta, T* y)
    {
        std::int64_t row = begin.row;
        if (begin.partial >= 0) {
            const std::int64_t stop = end.row == row ? end.nonzero : std::int64_t{row_ptr[row + 1]};
            store_chunks(begin.partial, row_ptr[row], begin.nonzero, stop, x);
            ++row;
        }
        const Product<T, V, Index> product{row_ptr, shard_.col_idx, values_, alpha, x, beta, y};
        if (wide_) {
            (ahead_ ? multiply_wide<true, Index> : multiply_wide<false, Index>)(product, row, end.row);
        } else {
            (ahead_ ? multiply_rows<true, T, V, Index> : multiply_rows<false, T, V, Index>)(product, row, end.row);
        }
        row = std::max(row, end.row);
        if (row == end.row && end.partial >= 0) {
            store_chunks(end.partial, row_ptr[row], row_ptr[row], end.nonzero, x);
        }
    }

    template <bool ahead, class Index>
    RMSP_WIDE_BODY static void multiply_wide(const Product<T, V, Index>& product, std::int64_t row, std::int64_t end)
    {
        multiply_rows<ahead>(product, row, end);
    }

    /// Sums the chunks of nonzeros [begin, end) of the row that starts at row_begin.
    void store_chunks(std::int64_t partial, std::int64_t row_begin, std::int64_t begin, std::int64_t end, const T* x)
    {
        for (std::int64_t i = begin; i < end; i += chunk) {
            partials_[static_cast<std::size_t>(partial + (i - row_begin) / chunk)] =
                dot_chunk(values_ + i, shard_.col_idx + i, std::min(end - i, chunk), x);
        }
    }

    template <class Index>
    void finish_row(const Index* row_ptr, const Cut& c, T alpha, T beta, T* y) const
    {
        const std::int64_t length = std::int64_t{row_ptr[c.row + 1]} - row_ptr[c.row];
        const T* partial = partials_.data() + c.partial;
        T sum = partial[0];
        for (std::int64_t i = 1; i < (length + chunk - 1) / chunk; ++i) {
            sum += partial[i];
        }
        write_row(alpha, sum, beta, y[c.row]);
    }

    CsrShard<T> shard_;
    const V* values_ = nullptr;
    DeviceArray<V> copy_;
    int ranges_;
    bool wakes_team_;
    bool ahead_;             ///< asks for its arrays ahead
    bool wide_;              ///< runs what is compiled for wider vectors
    std::vector<Cut> cuts_;  ///< ranges_ + 1
    std::vector<T> partials_;
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_openmp(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                const Context& context)
{
    return csr::of_kept_values<OpenMp>(shard, context);
}

RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_openmp)

}  // namespace rmsp::kernels
