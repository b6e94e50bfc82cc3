#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <kernels/spmv/common/csr_row.hpp>
#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {
namespace {

/// Rows of a slice: enough independent sums for the latency of additions, and few that straddle the lines of a grid.
constexpr int slice_rows = 16;

/// Slices of 16 rows that are equally long and whose entries k lie in neighbouring columns, along a diagonal, for each
/// k: most of a stencil in natural order. Their values are kept entry by entry, each with one column, so that a slice
/// is added without gathering x. The other slices stay in CSR. Values lie where CSR has them, in slices that are
/// turned. V: float if T is double and all values are floats; otherwise T.
template <class T, class V>
class Diagonals final : public SpmvOperator<T> {
public:
    Diagonals(const CsrShard<T>& shard, const Context& context)
        : shard_(shard), ranges_(std::max(context.threads, 1)), slices_((shard.rows + slice_rows - 1) / slice_rows)
    {
        values_ = DeviceArray<V>(*context.memory, static_cast<std::size_t>(shard.nnz));
        columns_ = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(shard.nnz / slice_rows + 1));
        turned_ = DeviceArray<std::uint8_t>(*context.memory, static_cast<std::size_t>(slices_));
        shard_.row_ptr.visit([&](const auto* row_ptr) {
            find_cuts(row_ptr);
            for_each_slice([&](std::int64_t slice) { examine(row_ptr, slice); });
            for (std::int64_t slice = 0; slice < slices_; ++slice) {
                if (turned_.data()[slice] != 0) {
                    turned_entries_ += row_ptr[(slice + 1) * slice_rows] - row_ptr[slice * slice_rows];
                }
            }
        });
        update_values(context);
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& /*context*/) override
    {
        shard_.row_ptr.visit([&](const auto* row_ptr) {
            for_each_slice([&](std::int64_t slice) {
                if (turned_.data()[slice] != 0) {
                    apply_turned(row_ptr, slice, alpha, x, beta, y);
                } else {
                    apply_rows(row_ptr, slice, alpha, x, beta, y);
                }
            });
        });
    }

    void update_values(const Context& /*context*/) override
    {
        shard_.row_ptr.visit([&](const auto* row_ptr) {
            for_each_slice([&](std::int64_t slice) {
                const std::int64_t begin = row_ptr[slice * slice_rows];
                const std::int64_t end = row_ptr[end_row(slice)];
                const T* const from = shard_.values + begin;
                V* const to = values_.data() + begin;
                const std::int64_t width = turned_.data()[slice] != 0 ? (end - begin) / slice_rows : 1;
                const std::int64_t lanes = turned_.data()[slice] != 0 ? slice_rows : end - begin;
                for (std::int64_t lane = 0; lane < lanes; ++lane) {
                    for (std::int64_t k = 0; k < width; ++k) {
                        to[k * lanes + lane] = static_cast<V>(from[lane * width + k]);
                    }
                }
            });
        });
    }

    /// False where CSR is as good: less than half of the entries lie along diagonals.
    bool worthwhile() const override { return 2 * turned_entries_ >= shard_.nnz; }

    std::int64_t format_bytes() const override
    {
        constexpr auto column = static_cast<std::int64_t>(sizeof(std::int32_t));
        const std::int64_t pointer = shard_.row_ptr.type() == IndexType::i32 ? 4 : 8;
        return shard_.nnz * static_cast<std::int64_t>(sizeof(V)) + turned_entries_ / slice_rows * column +
               (shard_.nnz - turned_entries_) * column + (shard_.rows + 1) * pointer + slices_;
    }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(values_.size() * sizeof(V) + columns_.size() * sizeof(std::int32_t) +
                                         turned_.size() + cuts_.size() * sizeof(std::int64_t));
    }

private:
    std::int64_t end_row(std::int64_t slice) const { return std::min((slice + 1) * slice_rows, shard_.rows); }
    std::int32_t* columns_of(std::int64_t begin) const { return columns_.data() + begin / slice_rows; }

    /// Slices of equal nonzeros and rows for each thread.
    template <class Index>
    void find_cuts(const Index* row_ptr)
    {
        cuts_.resize(static_cast<std::size_t>(ranges_) + 1);
        const auto weight = [&](std::int64_t slice) {
            const std::int64_t row = std::min(slice * slice_rows, shard_.rows);
            return row_ptr[row] + csr::row_weight * row;
        };
        for (int k = 0; k <= ranges_; ++k) {
            const std::int64_t total = weight(slices_);
            const std::int64_t target = total / ranges_ * k + total % ranges_ * k / ranges_;
            std::int64_t first = 0;
            for (std::int64_t n = slices_; n > 0;) {
                const std::int64_t half = n / 2;
                if (weight(first + half) < target) {
                    first += half + 1;
                    n -= half + 1;
                } else {
                    n = half;
                }
            }
            cuts_[static_cast<std::size_t>(k)] = first;
        }
        cuts_.back() = slices_;
    }

    template <class F>
    void for_each_slice(const F& f) const
    {
#pragma omp parallel for num_threads(ranges_) schedule(static, 1)
        for (int k = 0; k < ranges_; ++k) {
            const std::int64_t end = cuts_[static_cast<std::size_t>(k) + 1];
            for (std::int64_t slice = cuts_[static_cast<std::size_t>(k)]; slice < end; ++slice) {
                f(slice);
            }
        }
    }

    /// Whether the slice is turned; the columns of its first row then.
    template <class Index>
    void examine(const Index* row_ptr, std::int64_t slice)
    {
        const std::int64_t first = slice * slice_rows;
        const std::int64_t begin = row_ptr[first];
        const std::int64_t width = row_ptr[std::min(first + 1, shard_.rows)] - begin;
        bool turned = first + slice_rows <= shard_.rows && width > 0;
        for (int lane = 1; lane < slice_rows && turned; ++lane) {
            turned = row_ptr[first + lane + 1] - row_ptr[first + lane] == width;
            for (std::int64_t k = 0; k < width && turned; ++k) {
                turned = shard_.col_idx[begin + lane * width + k] == shard_.col_idx[begin + k] + lane;
            }
        }
        turned_.data()[slice] = turned ? 1 : 0;
        if (turned) {
            std::copy_n(shard_.col_idx + begin, width, columns_of(begin));
        }
    }

    template <class Index>
    void apply_turned(const Index* row_ptr, std::int64_t slice, T alpha, const T* x, T beta, T* y) const
    {
        const std::int64_t first = slice * slice_rows;
        const std::int64_t begin = row_ptr[first];
        const std::int64_t width = row_ptr[first + 1] - begin;
        const V* values = values_.data() + begin;
        const std::int32_t* const columns = columns_of(begin);
        T sums[slice_rows] = {};
        for (std::int64_t k = 0; k < width; ++k, values += slice_rows) {
            csr::prefetch_lines(values, slice_rows);
            const T* const along = x + columns[k];
            for (int lane = 0; lane < slice_rows; ++lane) {
                sums[lane] += static_cast<T>(values[lane]) * along[lane];
            }
        }
        for (int lane = 0; lane < slice_rows; ++lane) {
            csr::write_row(alpha, sums[lane], beta, y[first + lane]);
        }
    }

    template <class Index>
    void apply_rows(const Index* row_ptr, std::int64_t slice, T alpha, const T* x, T beta, T* y) const
    {
        for (std::int64_t row = slice * slice_rows; row < end_row(slice); ++row) {
            const std::int64_t begin = row_ptr[row];
            const std::int64_t n = row_ptr[row + 1] - begin;
            csr::prefetch(values_.data() + begin, shard_.col_idx + begin, n);
            csr::write_row(alpha, csr::dot_row(values_.data() + begin, shard_.col_idx + begin, n, x), beta, y[row]);
        }
    }

    CsrShard<T> shard_;
    int ranges_;
    std::int64_t slices_;
    std::int64_t turned_entries_ = 0;
    std::vector<std::int64_t> cuts_;  ///< ranges_ + 1 slices
    DeviceArray<V> values_;
    DeviceArray<std::int32_t>
        columns_;                       ///< of the turned slices: their first rows', at 1/16 of where their entries are
    DeviceArray<std::uint8_t> turned_;  ///< of each slice, whether it is
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_diagonals(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                   const Context& context)
{
    if (std::is_same_v<T, double> && shard.floats) {
        return std::make_unique<Diagonals<T, float>>(shard, context);
    }
    return std::make_unique<Diagonals<T, T>>(shard, context);
}

RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_diagonals)

}  // namespace rmsp::kernels
