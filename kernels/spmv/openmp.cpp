#include <algorithm>
#include <vector>

#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {
namespace {

/// A row is summed in chunks of so many nonzeros counted from its start, and the chunks' sums are added in order.
/// Threads share a long row by cutting it between chunks, so the result depends neither on the number of threads nor on
/// the shard.
constexpr std::int64_t chunk = 4096;
/// What a row costs besides its nonzeros (pointer, loop, y), in nonzeros.
constexpr std::int64_t row_weight = 4;

/// Where a thread's range begins. If that is inside a row, the chunk sums of this row are kept from partials[partial]
/// on.
struct Cut {
    std::int64_t row = 0;
    std::int64_t nonzero = 0;
    std::int64_t partial = -1;
};

template <class T>
T dot_chunk(const T* values, const std::int32_t* cols, std::int64_t n, const T* x)
{
    // Four independent sums: one chain of additions would be slower than memory.
    T s0 = 0;
    T s1 = 0;
    T s2 = 0;
    T s3 = 0;
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        s0 += values[i] * x[cols[i]];
        s1 += values[i + 1] * x[cols[i + 1]];
        s2 += values[i + 2] * x[cols[i + 2]];
        s3 += values[i + 3] * x[cols[i + 3]];
    }
    for (; i < n; ++i) {
        s0 += values[i] * x[cols[i]];
    }
    return (s0 + s1) + (s2 + s3);
}

template <class T>
T dot_row(const T* values, const std::int32_t* cols, std::int64_t n, const T* x)
{
    T sum = dot_chunk(values, cols, std::min(n, chunk), x);
    for (std::int64_t i = chunk; i < n; i += chunk) {
        sum += dot_chunk(values + i, cols + i, std::min(n - i, chunk), x);
    }
    return sum;
}

template <class T>
void write_row(T alpha, T sum, T beta, T& y)
{
    y = beta == T{0} ? alpha * sum : alpha * sum + beta * y;
}

template <class T>
class OpenMp final : public SpmvOperator<T> {
public:
    OpenMp(const CsrShard<T>& shard, int threads) : shard_(shard), ranges_(std::max(threads, 1))
    {
        cuts_.resize(static_cast<std::size_t>(ranges_) + 1);
        shard_.row_ptr.visit([&](const auto* row_ptr) { cut(row_ptr); });
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& /*context*/) override
    {
        shard_.row_ptr.visit([&](const auto* row_ptr) {
        // One range each; correct as well if the team turns out smaller than asked for.
#pragma omp parallel for num_threads(ranges_) schedule(static, 1)
            for (int k = 0; k < ranges_; ++k) {
                apply_range(row_ptr, cuts_[k], cuts_[k + 1], alpha, x, beta, y);
            }
            for (int k = 1; k < ranges_; ++k) {
                if (cuts_[k].partial >= 0 && cuts_[k].partial != cuts_[k - 1].partial) {
                    finish_row(row_ptr, cuts_[k], alpha, beta, y);
                }
            }
        });
    }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(partials_.size() * sizeof(T) + cuts_.size() * sizeof(Cut));
    }

private:
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
        for (; row < end.row; ++row) {
            const std::int64_t first = row_ptr[row];
            const std::int64_t n = row_ptr[row + 1] - first;
            write_row(alpha, dot_row(shard_.values + first, shard_.col_idx + first, n, x), beta, y[row]);
        }
        if (row == end.row && end.partial >= 0) {
            store_chunks(end.partial, row_ptr[row], row_ptr[row], end.nonzero, x);
        }
    }

    /// Sums the chunks of nonzeros [begin, end) of the row that starts at row_begin.
    void store_chunks(std::int64_t partial, std::int64_t row_begin, std::int64_t begin, std::int64_t end, const T* x)
    {
        for (std::int64_t i = begin; i < end; i += chunk) {
            partials_[static_cast<std::size_t>(partial + (i - row_begin) / chunk)] =
                dot_chunk(shard_.values + i, shard_.col_idx + i, std::min(end - i, chunk), x);
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
    int ranges_;
    std::vector<Cut> cuts_;  ///< ranges_ + 1
    std::vector<T> partials_;
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_openmp(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                const Context& context)
{
    return std::make_unique<OpenMp<T>>(shard, context.threads);
}

template std::unique_ptr<SpmvOperator<float>> prepare_openmp(const CsrShard<float>&, const RowStatistics&,
                                                             const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_openmp(const CsrShard<double>&, const RowStatistics&,
                                                              const Context&);

}  // namespace rmsp::kernels
