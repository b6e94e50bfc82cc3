#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_launch.cuh>
#include <kernels/spmv/common/read_ahead.cuh>
#include <kernels/spmv/common/row_pointers.cuh>
#include <kernels/spmv/ell/layout.hpp>
#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {
namespace {

constexpr int ell_threads = ell_tuning.threads;
constexpr int ell_warp = 32;

/// Entry e of lane l of warp w is at (w * entries + e) * 32 + l.
template <class T>
struct EllMatrix {
    std::int64_t rows;
    int lane_bits;          ///< 2^lane_bits lanes a row
    int entries;            ///< of a lane
    std::int32_t* columns;  ///< -1: padding
    T* values;
    EitherPointers row_ptr;  ///< of the CSR arrays
    const std::int32_t* csr_columns;
    const T* csr_values;
};

/// One thread a lane. \param Structure  columns as well
template <bool Structure, class T>
__global__ void __launch_bounds__(ell_threads) fill_ell_kernel(const EllMatrix<T> a)
{
    const std::int64_t thread = std::int64_t{blockIdx.x} * ell_threads + threadIdx.x;
    const std::int64_t row = thread >> a.lane_bits;
    const int lanes = 1 << a.lane_bits;
    const int lane = static_cast<int>(thread) & (lanes - 1);
    if (thread / ell_warp * ell_warp >> a.lane_bits >= a.rows) {  // warps behind the last row are not there
        return;
    }
    const std::int64_t begin = row < a.rows ? fetch(a.row_ptr, row) : 0;
    const std::int64_t end = row < a.rows ? fetch(a.row_ptr, row + 1) : 0;
    const std::int64_t first = thread / ell_warp * ell_warp * a.entries + thread % ell_warp;
    for (int e = 0; e < a.entries; ++e) {
        const std::int64_t from = begin + std::int64_t{e} * lanes + lane;
        const std::int64_t to = first + std::int64_t{e} * ell_warp;
        if constexpr (Structure) {
            a.columns[to] = from < end ? a.csr_columns[from] : -1;
        }
        a.values[to] = from < end ? a.csr_values[from] : T{0};
    }
}

/// The rows of the warps from `first_warp` on, up to `end_row`. How many entries a lane has is known when this is
/// compiled: the code of a small product comes from memory, too, and the less of it the better.
/// \param Left  some rows have more, in CSR
template <int Entries, bool Left, class T>
__global__ void __launch_bounds__(ell_threads)
    ell_kernel(const EllMatrix<T> a, std::int64_t first_warp, std::int64_t end_row, ReadAhead ahead, T alpha,
               const T* __restrict__ x, T beta, T* __restrict__ y)
{
    cuda::wait_for_kernel_before();
    const std::int64_t warp = first_warp + std::int64_t{blockIdx.x} * (ell_threads / ell_warp) + threadIdx.x / ell_warp;
    const int warp_lane = static_cast<int>(threadIdx.x) % ell_warp;
    const std::int64_t row = (warp * ell_warp + warp_lane) >> a.lane_bits;
    if ((warp * ell_warp >> a.lane_bits) >= end_row) {
        return;
    }
    const std::int32_t* const columns = a.columns + warp * (ell_warp * Entries) + warp_lane;
    const T* const values = a.values + warp * (ell_warp * Entries) + warp_lane;
    std::int32_t column[Entries];
    T value[Entries];
    T gathered[Entries];
#pragma unroll
    for (int e = 0; e < Entries; ++e) {
        column[e] = __ldcs(columns + e * ell_warp);
        value[e] = __ldcs(values + e * ell_warp);
    }
    ask_for(ahead);  // of x, while these are waited for
#pragma unroll
    for (int e = 0; e < Entries; ++e) {
        gathered[e] = column[e] >= 0 ? __ldg(x + column[e]) : T{0};
    }
    T sum = 0;
#pragma unroll
    for (int e = 0; e < Entries; ++e) {
        sum += value[e] * gathered[e];
    }
    const int lanes = 1 << a.lane_bits;
    const int lane = warp_lane & (lanes - 1);
    if (Left && row < end_row) {
        const std::int64_t end = fetch(a.row_ptr, row + 1);
        for (std::int64_t i = fetch(a.row_ptr, row) + lanes * Entries + lane; i < end; i += lanes) {
            sum += a.csr_values[i] * __ldg(x + a.csr_columns[i]);
        }
    }
    sum = cuda::group_sum(sum, lanes);
    if (lane == 0 && row < end_row) {
        y[row] = beta == T{0} ? alpha * sum : alpha * sum + beta * y[row];
    }
}

template <class T>
class Ell final : public SpmvOperator<T> {
public:
    Ell(const CsrShard<T>& shard, const RowStatistics& rows, const Context& context)
        : shard_(shard), shape_(ell_shape(rows)), entries_(ell_entries(shard.rows, shape_))
    {
        if (blocks_for(warps_of(shard_.rows)) > std::numeric_limits<std::int32_t>::max()) {
            throw Error(ErrorCode::usage,
                        "ell: " + std::to_string(shard.rows) + " rows are more than one launch takes");
        }
        columns_ = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(entries_));
        values_ = DeviceArray<T>(*context.memory, static_cast<std::size_t>(entries_));
        fill<true>(context);
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        launch(0, shard_.rows, alpha, x, beta, y, context);
    }

    bool only_launches() const override { return true; }
    std::int64_t row_granule() const override { return ell_warp; }

    void apply_rows(std::int64_t first, std::int64_t end, T alpha, const T* x, T beta, T* y,
                    const Context& context) override
    {
        launch(first, end, alpha, x, beta, y, context);
    }

    void update_values(const Context& context) override { fill<false>(context); }

    std::int64_t format_bytes() const override { return workspace_bytes(); }
    std::int64_t workspace_bytes() const override
    {
        return entries_ * static_cast<std::int64_t>(sizeof(T) + sizeof(std::int32_t));
    }

private:
    static std::int64_t blocks_for(std::int64_t warps)
    {
        constexpr std::int64_t each = ell_threads / ell_warp;
        return (warps + each - 1) / each;
    }
    std::int64_t warps_of(std::int64_t rows) const { return (rows * shape_.lanes + ell_warp - 1) / ell_warp; }

    EllMatrix<T> matrix() const
    {
        return {shard_.rows,    std::countr_zero(static_cast<unsigned>(shape_.lanes)),
                shape_.entries, columns_.data(),
                values_.data(), {shard_.row_ptr.data(), shard_.row_ptr.type() == IndexType::i64},
                shard_.col_idx, shard_.values};
    }

    template <bool Structure>
    void fill(const Context& context) const
    {
        if (entries_ > 0) {
            fill_ell_kernel<Structure><<<static_cast<unsigned>(blocks_for(warps_of(shard_.rows))), ell_threads, 0,
                                         static_cast<cudaStream_t>(context.stream)>>>(matrix());
            RMSP_CUDA_CHECK_LAUNCH("fill_ell_kernel");
        }
    }

    void launch(std::int64_t first, std::int64_t end, T alpha, const T* x, T beta, T* y, const Context& context) const
    {
        if (first >= end) {
            return;
        }
        const std::int64_t first_warp = warps_of(first);
        const std::int64_t blocks = blocks_for(warps_of(end) - first_warp);
        const ReadAhead ahead = read_ahead(shard_, 0, x, blocks * ell_threads);
        cuda::launch_early("launch of ell", kernel(), dim3(static_cast<unsigned>(blocks)), ell_threads, context,
                           matrix(), first_warp, end, ahead, alpha, x, beta, y);
    }

    template <int Entries>
    auto kernel_of() const
    {
        return shape_.left ? ell_kernel<Entries, true, T> : ell_kernel<Entries, false, T>;
    }
    auto kernel() const
    {
        static_assert(ell_tuning.longest_lane == 4);
        return shape_.entries == 1   ? kernel_of<1>()
               : shape_.entries == 2 ? kernel_of<2>()
               : shape_.entries == 3 ? kernel_of<3>()
                                     : kernel_of<4>();
    }

    CsrShard<T> shard_;
    EllShape shape_;
    std::int64_t entries_;
    DeviceArray<std::int32_t> columns_;
    DeviceArray<T> values_;
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ell(const CsrShard<T>& shard, const RowStatistics& rows,
                                             const Context& context)
{
    return std::make_unique<Ell<T>>(shard, rows, context);
}

RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_ell)

}  // namespace rmsp::kernels
