#include <algorithm>
#include <limits>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_primitives.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/spmv/common/slices.hpp>
#include <kernels/spmv/sell_blocks/prepare.hpp>
#include <kernels/spmv/sell_reordered/reorder.hpp>
#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {
namespace {

constexpr int permute_threads = 256;

/// Entries of the row at each place; none behind the last.
template <class Offset>
__global__ void __launch_bounds__(permute_threads)
    lengths_kernel(const Offset* row_ptr, const std::int32_t* row, std::int64_t rows, Offset* lengths)
{
    const std::int64_t place = std::int64_t{blockIdx.x} * permute_threads + threadIdx.x;
    if (place <= rows) {
        lengths[place] = place < rows ? row_ptr[row[place] + 1] - row_ptr[row[place]] : Offset{0};
    }
}

template <class T, class Offset>
struct Rows {
    const Offset* row_ptr;
    const std::int32_t* col_idx;
    const T* values;
};

/// Copies each row to its place, with the columns' new numbers, ascending; several lanes a row. Rows that "sell" leaves
/// in CSR keep the order of their entries.
template <int Lanes, class T, class Offset>
__global__ void __launch_bounds__(permute_threads)
    permute_kernel(std::int64_t rows, const std::int32_t* __restrict__ row, const std::int32_t* __restrict__ number,
                   const Rows<T, Offset> from, const Offset* __restrict__ to_ptr, std::int32_t* __restrict__ to_columns,
                   T* __restrict__ to_values)
{
    const std::int64_t at = (std::int64_t{blockIdx.x} * permute_threads + threadIdx.x) / Lanes;
    if (at >= rows) {
        return;
    }
    const int lane = static_cast<int>(threadIdx.x) % Lanes;
    const unsigned mask = Lanes == 32 ? 0xffffffffu : ((1u << Lanes) - 1) << (threadIdx.x % 32 / Lanes * Lanes);
    const std::int64_t begin = from.row_ptr[row[at]];
    const std::int64_t length = from.row_ptr[row[at] + 1] - begin;
    const std::int64_t to = to_ptr[at];
    constexpr std::int32_t none = std::numeric_limits<std::int32_t>::max();
    const auto column_at = [&](std::int64_t k) {
        return k < length ? __ldg(number + __ldg(from.col_idx + begin + k)) : none;
    };
    const bool sorted = length <= slice_policy.longest_row;
    for (std::int64_t first = 0; first < length; first += Lanes) {
        const std::int64_t k = first + lane;
        const std::int32_t column = column_at(k);
        std::int64_t rank = k;
        if (sorted) {
            rank = 0;
            for (std::int64_t others = 0; others < length; others += Lanes) {
                const std::int32_t theirs = others == first ? column : column_at(others + lane);
#pragma unroll 8
                for (int i = 0; i < Lanes; ++i) {
                    const std::int32_t other = __shfl_sync(mask, theirs, i, Lanes);
                    rank += other < column || (other == column && others + i < k) ? 1 : 0;
                }
            }
        }
        if (k < length) {
            to_columns[to + rank] = column;
            to_values[to + rank] = __ldcs(from.values + begin + k);
        }
    }
}

constexpr int gathers = 4;  // of a thread, in flight at once

/// Columns [first, end).
struct Columns {
    std::int64_t first = 0;
    std::int64_t end = 0;
};

/// out[i] = alpha in[index[i]] + beta out[i] for those of i < n whose index is in `there`, which begins at 0 or later.
template <class T>
__global__ void __launch_bounds__(permute_threads)
    gather_kernel(std::int64_t n, const std::int32_t* __restrict__ index, Columns there, T alpha,
                  const T* __restrict__ in, T beta, T* __restrict__ out)
{
    const std::int64_t first = std::int64_t{blockIdx.x} * permute_threads * gathers + threadIdx.x;
    std::int32_t from[gathers];
    T value[gathers];
#pragma unroll
    for (int k = 0; k < gathers; ++k) {
        from[k] = first + k * permute_threads < n ? __ldcs(index + first + k * permute_threads) : -1;
    }
    const auto takes = [&](int k) { return from[k] >= there.first && from[k] < there.end; };
#pragma unroll
    for (int k = 0; k < gathers; ++k) {
        value[k] = takes(k) ? alpha * __ldg(in + from[k]) : T{0};
    }
#pragma unroll
    for (int k = 0; k < gathers; ++k) {
        if (takes(k)) {
            T* const to = out + first + k * permute_threads;
            *to = beta == T{0} ? value[k] : value[k] + beta * *to;
        }
    }
}

/// From the first to the last column in which the shard has entries: what it may read of x. Waits for the stream.
template <class T>
Columns touched_columns(const CsrShard<T>& shard, const Context& context)
{
    const auto stream = static_cast<cudaStream_t>(context.stream);
    const DeviceArray<std::int32_t> found(*context.memory, 2);
    cuda::least(shard.col_idx, shard.nnz, found.data(), context);
    cuda::largest(shard.col_idx, shard.nnz, found.data() + 1, context);
    std::int32_t columns[2] = {0, -1};
    cuda::read(columns, found.data(), sizeof columns, stream);
    return {columns[0], std::int64_t{columns[1]} + 1};
}

unsigned permute_blocks(std::int64_t n) { return static_cast<unsigned>((n + permute_threads - 1) / permute_threads); }

/// A copy of the shard in the order of order_rows(), a part of a matrix with the columns of number_columns(),
/// multiplied by "sell-blocks" where blocks fill, else by "sell". Where there is no order, the shard as it comes by
/// "sell".
template <class T, class Offset>
class SellReordered final : public SpmvOperator<T> {
public:
    SellReordered(const CsrShard<T>& shard, const Offset* row_ptr, const RowStatistics& rows, const Context& context)
        : shard_(shard), row_ptr_(row_ptr)
    {
        if (has_square_block(shard)) {
            order_ = order_rows(shard, context);
        }
        if (!reordered()) {
            sell_ = prepare_scattering_sell(shard, context);
            return;
        }
        row_order_ = {order_.row.data(), order_.place.data()};
        if (is_whole()) {
            touched_ = touched_columns(shard, context);
        } else {
            numbers_ = number_columns(shard, order_, context);
        }
        permuted_ptr_ = DeviceArray<Offset>(*context.memory, static_cast<std::size_t>(shard.rows) + 1);
        columns_ = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(shard.nnz));
        values_ = DeviceArray<T>(*context.memory, static_cast<std::size_t>(shard.nnz));
        x_ = DeviceArray<T>(*context.memory, static_cast<std::size_t>(shard.cols));
        const auto stream = static_cast<cudaStream_t>(context.stream);
        lengths_kernel<<<permute_blocks(shard.rows + 1), permute_threads, 0, stream>>>(
            row_ptr, order_.row.data(), shard.rows, permuted_ptr_.data());
        RMSP_CUDA_CHECK_LAUNCH("lengths_kernel");
        cuda::exclusive_sum(permuted_ptr_.data(), shard.rows + 1, context);
        permute(context);
        CsrShard<T> permuted = shard;
        permuted.row_ptr = IndexView(permuted_ptr_.data());
        permuted.col_idx = columns_.data();
        permuted.values = values_.data();
        permuted.early_cols = 0;
        if (order_.twins * 100 >= shard.rows * reorder_tuning.least_twins) {
            blocks_ = prepare_sell_blocks(permuted, rows, context);
            if (blocks_->worthwhile()) {
                sums_ = DeviceArray<T>(*context.memory, static_cast<std::size_t>(shard.rows));
                return;
            }
            blocks_.reset();
        }
        sell_ = prepare_scattering_sell(permuted, context);
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        if (reordered()) {
            apply_in_order(alpha, x, false, beta, y, false, context);
        } else {
            sell_->apply(alpha, x, beta, y, context);
        }
    }

    const RowOrder* order() const override { return is_whole() && reordered() ? &row_order_ : nullptr; }

    void apply_in_order(T alpha, const T* x, bool x_in_order, T beta, T* y, bool y_in_order,
                        const Context& context) override
    {
        if (!x_in_order) {
            permute_x(x, context);
            x = x_.data();
        }
        if (y_in_order) {
            inner().apply(alpha, x, beta, y, context);
        } else if (sell_) {
            sell_->apply_to(alpha, x, beta, y, row_order_.row, context);
        } else {
            blocks_->apply(T{1}, x, T{0}, sums_.data(), context);
            gather(shard_.rows, row_order_.place, {0, shard_.rows}, alpha, sums_.data(), beta, y, context);
        }
    }

    void update_values(const Context& context) override
    {
        if (reordered()) {
            permute(context);
        }
        inner().update_values(context);
    }

    bool worthwhile() const override { return reordered(); }

    std::int64_t format_bytes() const override
    {
        const std::int64_t gathered = is_whole() ? shard_.rows : numbers_.touched;
        return inner().format_bytes() +
               (shard_.rows + gathered) * static_cast<std::int64_t>(reordered() ? sizeof(std::int32_t) : 0);
    }

    std::int64_t workspace_bytes() const override
    {
        return inner().workspace_bytes() +
               static_cast<std::int64_t>((order_.row.size() + order_.place.size() + numbers_.column.size() +
                                          numbers_.number.size() + columns_.size()) *
                                             sizeof(std::int32_t) +
                                         permuted_ptr_.size() * sizeof(Offset) +
                                         (values_.size() + x_.size() + sums_.size()) * sizeof(T));
    }

private:
    bool reordered() const { return order_.row.size() > 0; }
    bool is_whole() const { return shard_.diagonal == 0 && shard_.rows == shard_.cols; }
    SpmvOperator<T>& inner() const { return blocks_ ? *blocks_ : *sell_; }

    /// out[i] = alpha in[index[i]] + beta out[i] for those of i < n whose index is in `there`.
    static void gather(std::int64_t n, const std::int32_t* index, Columns there, T alpha, const T* in, T beta, T* out,
                       const Context& context)
    {
        if (n > 0) {
            gather_kernel<<<permute_blocks((n + gathers - 1) / gathers), permute_threads, 0,
                            static_cast<cudaStream_t>(context.stream)>>>(n, index, there, alpha, in, beta, out);
            RMSP_CUDA_CHECK_LAUNCH("gather_kernel");
        }
    }

    /// x in the order of the permuted columns. There may be no more of x than what the shard touches.
    void permute_x(const T* x, const Context& context) const
    {
        if (is_whole()) {
            gather(shard_.rows, row_order_.row, touched_, T{1}, x, T{0}, x_.data(), context);
        } else {
            gather(numbers_.touched, numbers_.column.data(), {0, shard_.cols}, T{1}, x, T{0}, x_.data(), context);
        }
    }

    void permute(const Context& context)
    {
        const std::int64_t mean = shard_.nnz / shard_.rows;
        if (mean <= 8) {
            permute_by<8>(context);
        } else if (mean <= 16) {
            permute_by<16>(context);
        } else {
            permute_by<32>(context);
        }
    }

    template <int Lanes>
    void permute_by(const Context& context)
    {
        permute_kernel<Lanes>
            <<<permute_blocks(shard_.rows * Lanes), permute_threads, 0, static_cast<cudaStream_t>(context.stream)>>>(
                shard_.rows, order_.row.data(), is_whole() ? order_.place.data() : numbers_.number.data(),
                Rows<T, Offset>{row_ptr_, shard_.col_idx, shard_.values}, permuted_ptr_.data(), columns_.data(),
                values_.data());
        RMSP_CUDA_CHECK_LAUNCH("permute_kernel");
    }

    CsrShard<T> shard_;
    const Offset* row_ptr_;
    Ordering order_;  ///< empty: as it comes
    RowOrder row_order_;
    Columns touched_;        ///< of a whole matrix
    ColumnNumbers numbers_;  ///< of a part of one
    DeviceArray<Offset> permuted_ptr_;
    DeviceArray<std::int32_t> columns_;
    DeviceArray<T> values_;
    DeviceArray<T> x_;     ///< in the order
    DeviceArray<T> sums_;  ///< in the order, of `blocks_`
    std::unique_ptr<ScatteringSpmv<T>> sell_;
    std::unique_ptr<SpmvOperator<T>> blocks_;  ///< or this one
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_sell_reordered(const CsrShard<T>& shard, const RowStatistics& rows,
                                                        const Context& context)
{
    if (shard.row_ptr.type() == IndexType::i32) {
        return std::make_unique<SellReordered<T, std::int32_t>>(
            shard, static_cast<const std::int32_t*>(shard.row_ptr.data()), rows, context);
    }
    return std::make_unique<SellReordered<T, std::int64_t>>(
        shard, static_cast<const std::int64_t*>(shard.row_ptr.data()), rows, context);
}

RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_sell_reordered)

}  // namespace rmsp::kernels
