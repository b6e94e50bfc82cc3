#include <algorithm>
#include <limits>
#include <string>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/spmv/sell.hpp>
#include <kernels/spmv/sell_build.cuh>
#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {
namespace {

using namespace sell;

static_assert(sell_tuning.loads_in_flight >= 2, "a chunk is whole groups of columns");
/// Entries that a lane loads before it uses the first.
template <class T>
constexpr int chunk = sell_tuning.loads_in_flight* Vector<T>::width;

/// Columns of the entries k, ..., k + 3 of this lane.
template <SliceCode Code>
__device__ __forceinline__ void load_columns(const int4* bases, const unsigned char* codes, int k, int lane,
                                             std::int32_t* column)
{
    const int group = k / slice_group;
    const unsigned char* block = codes + group * code_block_bytes * code_bytes(Code);
    if constexpr (Code == SliceCode::bytes4) {
        unpack(__ldcs(reinterpret_cast<const int4*>(block) + lane), column);
    } else {
        unpack(__ldg(bases + group), column);
        if constexpr (Code == SliceCode::diagonal) {
#pragma unroll
            for (int j = 0; j < slice_group; ++j) {
                column[j] += lane;
            }
        } else if constexpr (Code == SliceCode::bytes1) {
            const unsigned code = __ldcs(reinterpret_cast<const unsigned*>(block) + lane);
#pragma unroll
            for (int j = 0; j < slice_group; ++j) {
                column[j] += static_cast<std::int32_t>(code >> 8 * j & 0xffu);
            }
        } else {
            const uint2 code = __ldcs(reinterpret_cast<const uint2*>(block) + lane);
            column[0] += static_cast<std::int32_t>(code.x & 0xffffu);
            column[1] += static_cast<std::int32_t>(code.x >> 16);
            column[2] += static_cast<std::int32_t>(code.y & 0xffffu);
            column[3] += static_cast<std::int32_t>(code.y >> 16);
        }
    }
}

/// Adds the entries k, ..., k + chunk - 1 of this lane to `sum`, in their order; all of them are inside the slice if `Whole`.
/// Padding is never multiplied: x may hold what is not finite.
template <SliceCode Code, bool Whole, class T>
__device__ __forceinline__ T add_chunk(T sum, const T* values, const int4* bases, const unsigned char* codes, int k,
                                       int width, int length, int lane, const T* __restrict__ x)
{
    constexpr int n = chunk<T>;
    constexpr int vector = Vector<T>::width;
    T value[n];
    T gathered[n];
    std::int32_t column[n];
#pragma unroll
    for (int v = 0; v < n; v += vector) {
        if (Whole || k + v + vector <= width) {
            // Each is used once: evicted first, so that x stays in the caches.
            unpack(__ldcs(reinterpret_cast<const typename Vector<T>::type*>(values + (k + v) * slice_rows) + lane),
                   value + v);
        } else {
#pragma unroll
            for (int j = v; j < v + vector; ++j) {
                value[j] = k + j < width ? __ldcs(values + (k + j) * slice_rows + lane) : T{0};
            }
        }
    }
#pragma unroll
    for (int j = 0; j < n; j += slice_group) {
        if (Whole || k + j < width) {
            load_columns<Code>(bases, codes, k + j, lane, column + j);
        } else {
#pragma unroll
            for (int i = j; i < j + slice_group; ++i) {
                column[i] = 0;
            }
        }
    }
#pragma unroll
    for (int j = 0; j < n; ++j) {
        gathered[j] = k + j < length ? __ldg(x + column[j]) : T{0};
    }
#pragma unroll
    for (int j = 0; j < n; ++j) {
        if (k + j < length) {
            sum = fma(value[j], gathered[j], sum);
        }
    }
    return sum;
}

template <SliceCode Code, class T, class Offset>
__device__ __forceinline__ T slice_row_sum(const Matrix<T, Offset>& a, const Slice& slice, int length, int lane,
                                           const T* __restrict__ x)
{
    const T* values = slice_values(a, slice);
    const int4* bases = a.bases + slice.bases;
    const unsigned char* codes = slice_codes(a, slice);
    const int width = slice.width;
    T sum = 0;
    int k = 0;
    for (; k + chunk<T> <= width; k += chunk<T>) {
        sum = add_chunk<Code, true>(sum, values, bases, codes, k, width, length, lane, x);
    }
    if (k < width) {
        sum = add_chunk<Code, false>(sum, values, bases, codes, k, width, length, lane, x);
    }
    return sum;
}

/// The same additions in the same order as in a slice.
template <class T, class Offset>
__device__ T csr_row_sum(const Matrix<T, Offset>& a, std::int64_t row, int length, const T* __restrict__ x)
{
    const Offset begin = load_row(a, row).begin;
    const std::int32_t* columns = a.col_idx + begin;
    const T* entries = a.entries + begin;
    T sum = 0;
#pragma unroll 4
    for (int k = 0; k < length; ++k) {
        sum = fma(__ldg(entries + k), __ldg(x + __ldg(columns + k)), sum);
    }
    return sum;
}

/// The long rows of a slice, one after the other by the whole warp; `sum` of the lanes whose rows they are.
template <class T, class Offset>
__device__ T add_long_rows(const Matrix<T, Offset>& a, unsigned long_rows, std::int64_t row_index, T sum, int lane,
                           const T* __restrict__ x)
{
    const Row<Offset> row = load_row(a, row_index);
    for (; long_rows != 0; long_rows &= long_rows - 1) {
        const int owner = __ffs(static_cast<int>(long_rows)) - 1;
        const Offset begin = __shfl_sync(whole_warp, row.begin, owner);
        const Offset length = __shfl_sync(whole_warp, row.length, owner);
        T part = 0;
#pragma unroll 4
        for (std::int64_t k = lane; k < length; k += slice_rows) {
            part = fma(__ldcs(a.entries + begin + k), __ldg(x + __ldcs(a.col_idx + begin + k)), part);
        }
        part = __shfl_sync(whole_warp, cuda::group_sum(part, slice_rows), 0);
        sum = lane == owner ? part : sum;
    }
    return sum;
}

/// One warp a slice of [first, slices). The additions of a row depend on the row alone, neither on its slice nor on how that is stored.
template <class T, class Offset>
__global__ void __launch_bounds__(threads, sell_tuning.blocks_per_multiprocessor)
    sell_kernel(const Matrix<T, Offset> a, std::int64_t first, std::int64_t slices, T alpha, const T* __restrict__ x,
                T beta, T* __restrict__ y)
{
    const std::int64_t index = first + std::int64_t{blockIdx.x} * slices_per_block + threadIdx.x / slice_rows;
    const int lane = static_cast<int>(threadIdx.x) % slice_rows;
    if (index >= slices) {
        return;
    }
    const Slice slice = a.slices[index];
    std::int64_t row = index * slice_rows + lane;
    int length = slice.width;
    unsigned long_rows = 0;
    if (!slice.plain) {
        const Slot slot = a.slots[row];
        row = row_of(index, slot);
        length = stored_length(slot);
        long_rows = __ballot_sync(whole_warp, slot.length == long_row);
    }
    T sum = 0;
    switch (slice.code) {
        case SliceCode::diagonal:
            sum = slice_row_sum<SliceCode::diagonal>(a, slice, length, lane, x);
            break;
        case SliceCode::bytes1:
            sum = slice_row_sum<SliceCode::bytes1>(a, slice, length, lane, x);
            break;
        case SliceCode::bytes2:
            sum = slice_row_sum<SliceCode::bytes2>(a, slice, length, lane, x);
            break;
        case SliceCode::bytes4:
            sum = slice_row_sum<SliceCode::bytes4>(a, slice, length, lane, x);
            break;
        case SliceCode::csr:
            sum = csr_row_sum(a, row, length, x);
            break;
    }
    if (long_rows != 0) {
        sum = add_long_rows(a, long_rows, row, sum, lane, x);
    }
    if (row < a.rows) {
        y[row] = beta == T{0} ? alpha * sum : alpha * sum + beta * y[row];
    }
}

template <class T, class Offset>
class Sell final : public SpmvOperator<T> {
public:
    Sell(const CsrShard<T>& shard, const Offset* row_ptr, const Context& context)
        : shard_(shard), row_ptr_(row_ptr), slices_count_((shard.rows + slice_rows - 1) / slice_rows)
    {
        if (blocks() > std::numeric_limits<std::int32_t>::max()) {
            throw Error(ErrorCode::usage,
                        "sell: " + std::to_string(shard.rows) + " rows are more than one launch takes");
        }
        if (slices_count_ == 0) {
            return;
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        slots_ = DeviceArray<Slot>(*context.memory, static_cast<std::size_t>(slices_count_) * slice_rows);
        slices_ = DeviceArray<Slice>(*context.memory, static_cast<std::size_t>(slices_count_));
        const DeviceArray<SellExtent> total(*context.memory, 1);
        sort_kernel<<<static_cast<unsigned>((shard.rows + sort_rows - 1) / sort_rows), sort_rows, 0, stream>>>(
            matrix(), slices_count_);
        RMSP_CUDA_CHECK_LAUNCH("sort_kernel");
        measure_kernel<<<static_cast<unsigned>(blocks()), threads, 0, stream>>>(matrix(), slices_count_);
        RMSP_CUDA_CHECK_LAUNCH("measure_kernel");
        place_kernel<<<1, scan_threads, 0, stream>>>(slices_.data(), slices_count_, total.data());
        RMSP_CUDA_CHECK_LAUNCH("place_kernel");
        SellExtent extent;
        RMSP_CUDA_CHECK(cudaMemcpyAsync(&extent, total.data(), sizeof extent, cudaMemcpyDeviceToHost, stream));
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
        if (!fits_slice_positions(extent)) {
            throw Error(ErrorCode::usage, "sell: " + std::to_string(extent.values) + " times 32 values of " +
                                              std::to_string(shard.rows) + " rows and " + std::to_string(shard.nnz) +
                                              " nonzeros are more than 2^32 - 1 positions");
        }
        values_ = DeviceArray<T>(*context.memory, static_cast<std::size_t>(extent.values) * slice_rows);
        bases_ = DeviceArray<int4>(*context.memory, static_cast<std::size_t>(extent.bases));
        codes_ = DeviceArray<unsigned char>(*context.memory, static_cast<std::size_t>(extent.codes) * code_block_bytes);
        fill<true>(stream);
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        launch(0, slices_count_, alpha, x, beta, y, context);
    }

    std::int64_t row_granule() const override { return sort_rows; }

    void apply_rows(std::int64_t first, std::int64_t end, T alpha, const T* x, T beta, T* y,
                    const Context& context) override
    {
        launch(first / slice_rows, (end + slice_rows - 1) / slice_rows, alpha, x, beta, y, context);
    }

    void update_values(const Context& context) override { fill<false>(static_cast<cudaStream_t>(context.stream)); }

    std::int64_t format_bytes() const override
    {
        // Slots are read for some slices only, and what stays in CSR is at least what the slices have no room for.
        const auto left = std::max<std::int64_t>(0, shard_.nnz - static_cast<std::int64_t>(values_.size()));
        return workspace_bytes() - static_cast<std::int64_t>(slots_.size() * sizeof(Slot)) +
               left * static_cast<std::int64_t>(sizeof(T) + sizeof(std::int32_t));
    }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(slots_.size() * sizeof(Slot) + slices_.size() * sizeof(Slice) +
                                         values_.size() * sizeof(T) + bases_.size() * sizeof(int4) + codes_.size());
    }

private:
    static std::int64_t blocks_for(std::int64_t slices) { return (slices + slices_per_block - 1) / slices_per_block; }
    std::int64_t blocks() const { return blocks_for(slices_count_); }

    void launch(std::int64_t first, std::int64_t end, T alpha, const T* x, T beta, T* y, const Context& context) const
    {
        if (first >= end) {
            return;
        }
        sell_kernel<<<static_cast<unsigned>(blocks_for(end - first)), threads, 0,
                      static_cast<cudaStream_t>(context.stream)>>>(matrix(), first, end, alpha, x, beta, y);
        RMSP_CUDA_CHECK_LAUNCH("sell");
    }

    Matrix<T, Offset> matrix() const
    {
        return {shard_.rows,    row_ptr_,       shard_.col_idx, shard_.values, slots_.data(),
                slices_.data(), values_.data(), bases_.data(),  codes_.data()};
    }

    template <bool Structure>
    void fill(cudaStream_t stream) const
    {
        if (values_.size() == 0) {
            return;
        }
        fill_kernel<Structure><<<static_cast<unsigned>(blocks()), threads, 0, stream>>>(matrix(), slices_count_);
        RMSP_CUDA_CHECK_LAUNCH("fill_kernel");
    }

    CsrShard<T> shard_;
    const Offset* row_ptr_;
    std::int64_t slices_count_;
    DeviceArray<Slot> slots_;
    DeviceArray<Slice> slices_;
    DeviceArray<T> values_;
    DeviceArray<int4> bases_;
    DeviceArray<unsigned char> codes_;
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_sell(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                              const Context& context)
{
    if (shard.row_ptr.type() == IndexType::i32) {
        return std::make_unique<Sell<T, std::int32_t>>(shard, static_cast<const std::int32_t*>(shard.row_ptr.data()),
                                                       context);
    }
    return std::make_unique<Sell<T, std::int64_t>>(shard, static_cast<const std::int64_t*>(shard.row_ptr.data()),
                                                   context);
}

template std::unique_ptr<SpmvOperator<float>> prepare_sell(const CsrShard<float>&, const RowStatistics&,
                                                           const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_sell(const CsrShard<double>&, const RowStatistics&,
                                                            const Context&);

}  // namespace rmsp::kernels
