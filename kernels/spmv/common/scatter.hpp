#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <kernels/spmv/spmv.hpp>
#include <rmsp/host_vector.hpp>

#include "core/even_cut.hpp"

namespace rmsp::kernels {

/// y = alpha A x + beta y on a host device where nonzeros come in any order of rows: each thread adds a range of
/// nonzeros into a partial y of its own, as long as the rows that the range touches, and the partial results are added
/// in order. The same bits for the same number of threads.
template <class T>
class Scatter : public SpmvOperator<T> {
public:
    void apply(T alpha, const T* x, T beta, T* y, const Context& /*context*/) final
    {
        const int ranges = static_cast<int>(touched_.size());
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
        for (int k = 0; k < ranges; ++k) {
            const Touched& rows = touched_[static_cast<std::size_t>(k)];
            T* const partial = partials_.data() + rows.offset;
            std::fill(partial, partial + (rows.end - rows.first), T{0});
            add_range(core::even_cut(nnz_, ranges, k), core::even_cut(nnz_, ranges, k + 1), x, partial, rows.first);
        }
        const std::int64_t blocks = (rows_ + block - 1) / block;
#pragma omp parallel for num_threads(threads_) schedule(static)
        for (std::int64_t b = 0; b < blocks; ++b) {
            add_partials(b * block, std::min(rows_, (b + 1) * block), alpha, beta, y);
        }
    }

    std::int64_t workspace_bytes() const final { return static_cast<std::int64_t>(partials_.size() * sizeof(T)); }

protected:
    /// row_idx counts from first_row.
    Scatter(std::int64_t rows, std::int64_t nnz, const std::int32_t* row_idx, std::int64_t first_row, int threads)
        : threads_(std::max(threads, 1)), rows_(rows), nnz_(nnz)
    {
        find_touched(row_idx, first_row, threads_);
        if (total() > rows + nnz) {
            // No more memory than the shard itself: fewer ranges, each of which may touch every row.
            find_touched(row_idx, first_row, static_cast<int>(1 + nnz / std::max<std::int64_t>(rows, 1)));
        }
        partials_.resize(static_cast<std::size_t>(total()));
    }

    /// Adds the products of nonzeros [begin, end): those of row r to partial[r - first_row].
    virtual void add_range(std::int64_t begin, std::int64_t end, const T* x, T* partial,
                           std::int64_t first_row) const = 0;

private:
    /// Rows of y that fit the first-level cache beside a partial y.
    static constexpr std::int64_t block = 1024;

    struct Touched {
        std::int64_t first = 0;
        std::int64_t end = 0;
        std::int64_t offset = 0;  ///< of its partial y
    };

    void find_touched(const std::int32_t* row_idx, std::int64_t first_row, int ranges)
    {
        touched_.assign(static_cast<std::size_t>(ranges), {});
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
        for (int k = 0; k < ranges; ++k) {
            const std::int32_t* const begin = row_idx + core::even_cut(nnz_, ranges, k);
            const std::int32_t* const end = row_idx + core::even_cut(nnz_, ranges, k + 1);
            if (begin != end) {
                const auto [least, most] = std::minmax_element(begin, end);
                touched_[static_cast<std::size_t>(k)] = {*least - first_row, *most - first_row + 1, 0};
            }
        }
        std::int64_t offset = 0;
        for (Touched& rows : touched_) {
            rows.offset = offset;
            offset += rows.end - rows.first;
        }
    }

    std::int64_t total() const { return touched_.back().offset + touched_.back().end - touched_.back().first; }

    void add_partials(std::int64_t first, std::int64_t end, T alpha, T beta, T* y) const
    {
        for (std::int64_t row = first; row < end; ++row) {
            y[row] = beta == T{0} ? T{0} : beta * y[row];
        }
        for (const Touched& rows : touched_) {
            const T* const partial = partials_.data() + rows.offset;
            for (std::int64_t row = std::max(first, rows.first); row < std::min(end, rows.end); ++row) {
                y[row] += alpha * partial[row - rows.first];
            }
        }
    }

    /// Of every team, also where there are fewer ranges: a smaller team ends the others' threads, and the next one
    /// makes them anew.
    int threads_;
    std::int64_t rows_;
    std::int64_t nnz_;
    std::vector<Touched> touched_;
    HostVector<T> partials_;  ///< first written, so placed, by the thread that uses it
};

}  // namespace rmsp::kernels
