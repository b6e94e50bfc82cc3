#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_launch.cuh>
#include <kernels/spmv/common/read_ahead.cuh>
#include <kernels/spmv/csr_row_vector/policy.hpp>
#include <kernels/spmv/csr_row_vector/staged_rows.hpp>
#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {
namespace {

constexpr int vector_threads = 128;

/// A group of `Lanes` threads a row (Bell and Garland, "Implementing sparse matrix-vector multiplication on
/// throughput-oriented processors", SC 2009).
template <int Lanes, int Unroll, class T, class Offset>
__global__ void __launch_bounds__(vector_threads)
    row_vector_kernel(std::int64_t rows, const Offset* __restrict__ row_ptr, const std::int32_t* __restrict__ col_idx,
                      const T* __restrict__ values, ReadAhead ahead, T alpha, const T* __restrict__ x, T beta,
                      T* __restrict__ y)
{
    cuda::wait_for_kernel_before();
    ask_for(ahead);
    const std::int64_t row = std::int64_t{blockIdx.x} * (vector_threads / Lanes) + threadIdx.x / Lanes;
    const int lane = static_cast<int>(threadIdx.x) % Lanes;
    const bool active = row < rows;
    const Offset begin = active ? __ldg(row_ptr + row) : 0;
    const Offset end = active ? __ldg(row_ptr + row + 1) : 0;
    const std::int32_t* columns = col_idx + begin + lane;
    const T* entries = values + begin + lane;
    constexpr int step = Unroll * Lanes;
    T sum = 0;
    // Counts down what is left, because begin + step may pass what 32 bits hold.
    for (Offset left = end - begin - lane; left > 0; left -= step, columns += step, entries += step) {
        std::int32_t column[Unroll];
        T value[Unroll];
        T gathered[Unroll];
#pragma unroll
        for (int k = 0; k < Unroll; ++k) {
            const bool in = k * Lanes < left;
            column[k] = in ? __ldcs(columns + k * Lanes) : 0;
            value[k] = in ? __ldcs(entries + k * Lanes) : T{0};
        }
#pragma unroll
        for (int k = 0; k < Unroll; ++k) {
            gathered[k] = k * Lanes < left ? __ldg(x + column[k]) : T{0};
        }
#pragma unroll
        for (int k = 0; k < Unroll; ++k) {
            sum += value[k] * gathered[k];
        }
    }
    sum = cuda::group_sum(sum, Lanes);
    if (active && lane == 0) {
        y[row] = beta == T{0} ? alpha * sum : alpha * sum + beta * y[row];
    }
}

/// Two neighbouring entries in one load, if they are there, evicted first, so that x stays in the caches.
template <class E>
__device__ __forceinline__ void load_if(bool there, const E* from, E* to)
{
    using Pair = std::conditional_t<std::is_same_v<E, float>, float2, int2>;
    if (there) {
        const Pair pair = __ldcs(reinterpret_cast<const Pair*>(from));
        to[0] = pair.x;
        to[1] = pair.y;
    }
}

/// As row_vector_kernel(), for floats, which lanes load in pairs; one template for both makes the compiler's
/// code for doubles slower. Pairs begin at even places of the arrays, so that the first and the last of a
/// row may have an entry of another row.
/// \param odd_end  nonzeros, if their number is odd: the last one has no neighbour
template <int Lanes, class T, class Offset>
__global__ void __launch_bounds__(vector_threads)
    row_pairs_kernel(std::int64_t rows, const Offset* __restrict__ row_ptr, const std::int32_t* __restrict__ col_idx,
                     const T* __restrict__ values, Offset odd_end, ReadAhead ahead, T alpha, const T* __restrict__ x,
                     T beta, T* __restrict__ y)
{
    constexpr int unroll = 2 * row_vector_unroll;
    cuda::wait_for_kernel_before();
    ask_for(ahead);
    const std::int64_t row = std::int64_t{blockIdx.x} * (vector_threads / Lanes) + threadIdx.x / Lanes;
    const int lane = static_cast<int>(threadIdx.x) % Lanes;
    const bool active = row < rows;
    const Offset begin = active ? __ldg(row_ptr + row) : 0;
    Offset end = active ? __ldg(row_ptr + row + 1) : 0;
    T sum = 0;
    if (end == odd_end) {
        if (lane == 0 && begin < end) {
            sum = values[end - 1] * x[col_idx[end - 1]];
        }
        --end;
    }
    const Offset first = begin - begin % 2 + lane * 2;
    bool before = lane == 0 && begin % 2 != 0;  // the first entry is of the row before
    const std::int32_t* columns = col_idx + first;
    const T* entries = values + first;
    constexpr int step = unroll * Lanes;
    for (Offset left = end - first; left > 0; left -= step, columns += step, entries += step) {
        std::int32_t column[unroll];
        T value[unroll];
        T gathered[unroll];
        const auto is_in = [&](int k) { return k / 2 * 2 * Lanes + k % 2 < left && !(k == 0 && before); };
#pragma unroll
        for (int k = 0; k < unroll; k += 2) {
            load_if(k * Lanes < left, columns + k * Lanes, column + k);
            load_if(k * Lanes < left, entries + k * Lanes, value + k);
        }
#pragma unroll
        for (int k = 0; k < unroll; ++k) {
            gathered[k] = is_in(k) ? __ldg(x + column[k]) : T{0};
        }
#pragma unroll
        for (int k = 0; k < unroll; ++k) {
            if (is_in(k)) {  // a value of another row may be a NaN
                sum += value[k] * gathered[k];
            }
        }
        before = false;
    }
    sum = cuda::group_sum(sum, Lanes);
    if (active && lane == 0) {
        y[row] = beta == T{0} ? alpha * sum : alpha * sum + beta * y[row];
    }
}

template <class T, class Offset>
class RowVector final : public SpmvOperator<T> {
public:
    RowVector(const CsrShard<T>& shard, const Offset* row_ptr, const RowVectorShape& shape)
        : shard_(shard), row_ptr_(row_ptr), shape_(shape)
    {
        if (blocks_for(shard.rows) > std::numeric_limits<std::int32_t>::max()) {
            throw Error(ErrorCode::usage, "SpMV with " + std::to_string(shape.lanes) + " lanes a row: " +
                                              std::to_string(shard.rows) + " rows are more than one launch takes");
        }
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        apply_rows(0, shard_.rows, alpha, x, beta, y, context);
    }

    bool only_launches() const override { return true; }
    std::int64_t row_granule() const override { return 1; }

    void apply_rows(std::int64_t first, std::int64_t end, T alpha, const T* x, T beta, T* y,
                    const Context& context) override
    {
        if (first >= end) {
            return;
        }
        switch (shape_.lanes) {
            case 2:
                return launch_steps<2>(first, end, alpha, x, beta, y, context);
            case 4:
                return launch_steps<4>(first, end, alpha, x, beta, y, context);
            case 8:
                return launch_steps<8>(first, end, alpha, x, beta, y, context);
            case 16:
                return launch_steps<16>(first, end, alpha, x, beta, y, context);
            default:
                return shape_.width == 1
                           ? launch<32, 1, row_vector_unroll>(first, end, alpha, x, beta, y, context)
                           : launch<32, row_vector_width<T>, row_vector_unroll>(first, end, alpha, x, beta, y, context);
        }
    }

private:
    std::int64_t blocks_for(std::int64_t rows) const
    {
        const std::int64_t rows_per_block = vector_threads / shape_.lanes;
        return (rows + rows_per_block - 1) / rows_per_block;
    }

    template <int Lanes>
    void launch_steps(std::int64_t first, std::int64_t end, T alpha, const T* x, T beta, T* y,
                      const Context& context) const
    {
        constexpr int width = row_vector_width<T>;
        // Pairs are loaded in steps of one length.
        if constexpr (width == 1) {
            if (shape_.unroll > row_vector_unroll) {
                return launch<Lanes, 1, 2 * row_vector_unroll>(first, end, alpha, x, beta, y, context);
            }
        }
        launch<Lanes, width, row_vector_unroll>(first, end, alpha, x, beta, y, context);
    }

    template <int Lanes, int Width, int Unroll>
    void launch(std::int64_t first, std::int64_t end, T alpha, const T* x, T beta, T* y, const Context& context) const
    {
        const std::int64_t rows = end - first;
        const dim3 blocks(static_cast<unsigned>(blocks_for(rows)));
        const std::int64_t launched = blocks_for(rows) * vector_threads;
        const ReadAhead ahead = rows == shard_.rows && reads_ahead(shard_.nnz, launched, context.compute_units)
                                    ? read_ahead(shard_, shard_.nnz, x, launched)
                                    : ReadAhead{};
        if constexpr (Width == 2) {
            const auto odd_end = static_cast<Offset>(shard_.nnz % 2 != 0 ? shard_.nnz : -1);
            cuda::launch_early("launch of csr-row-vector", row_pairs_kernel<Lanes, T, Offset>, blocks, vector_threads,
                               context, rows, row_ptr_ + first, shard_.col_idx, shard_.values, odd_end, ahead, alpha, x,
                               beta, y + first);
        } else {
            cuda::launch_early("launch of csr-row-vector", row_vector_kernel<Lanes, Unroll, T, Offset>, blocks,
                               vector_threads, context, rows, row_ptr_ + first, shard_.col_idx, shard_.values, ahead,
                               alpha, x, beta, y + first);
        }
    }

    CsrShard<T> shard_;
    const Offset* row_ptr_;
    RowVectorShape shape_;
};

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare(const CsrShard<T>& shard, const RowVectorShape& shape)
{
    return shard.row_ptr.visit([&]<class Offset>(const Offset* row_ptr) -> std::unique_ptr<SpmvOperator<T>> {
        return std::make_unique<RowVector<T, Offset>>(shard, row_ptr, shape);
    });
}

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_row_vector(const CsrShard<T>& shard, const RowStatistics& rows,
                                                    const Context& context)
{
    if (stages_rows(rows)) {
        if (auto staged = prepare_staged_rows(shard, rows, context)) {
            return staged;
        }
    }
    constexpr int width = row_vector_width<T>;
    const auto aligned = [](const auto* array) {
        return reinterpret_cast<std::uintptr_t>(array) % (width * sizeof(*array)) == 0;
    };
    // Arrays of the caller's that are not aligned are too rare for kernels of their own.
    return aligned(shard.col_idx) && aligned(shard.values) ? prepare(shard, row_vector_shape(rows, width))
                                                           : prepare(shard, RowVectorShape{});
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_row_warp(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                  const Context& /*context*/)
{
    // Fixed, so that the order of the additions in a row depends on the row alone.
    return prepare(shard, RowVectorShape{});
}

RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_row_vector)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_row_warp)

}  // namespace rmsp::kernels
