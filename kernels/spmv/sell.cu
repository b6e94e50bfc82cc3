#include <limits>
#include <string>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/spmv/sell.hpp>
#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {
namespace {

constexpr int threads = sell_tuning.threads;
constexpr int slices_per_block = threads / slice_rows;
constexpr unsigned whole_warp = 0xffffffffu;
constexpr int scan_threads = 1024;

/// 16 bytes of values.
template <class T>
struct Vector;
template <>
struct Vector<double> {
    static constexpr int width = 2;
    using type = double2;
};
template <>
struct Vector<float> {
    static constexpr int width = 4;
    using type = float4;
};
__device__ __forceinline__ void unpack(const double2& v, double* p)
{
    p[0] = v.x;
    p[1] = v.y;
}
__device__ __forceinline__ void unpack(const float4& v, float* p)
{
    p[0] = v.x;
    p[1] = v.y;
    p[2] = v.z;
    p[3] = v.w;
}
__device__ __forceinline__ double2 pack(const double* p) { return {p[0], p[1]}; }
__device__ __forceinline__ float4 pack(const float* p) { return {p[0], p[1], p[2], p[3]}; }
__device__ __forceinline__ void unpack(const int4& v, std::int32_t* p)
{
    p[0] = v.x;
    p[1] = v.y;
    p[2] = v.z;
    p[3] = v.w;
}

template <class T, class Offset>
struct Matrix {
    std::int64_t rows;
    const Offset* row_ptr;
    const std::int32_t* col_idx;
    const T* entries;  ///< of the CSR arrays
    Slice* slices;
    T* values;  ///< of a slice: vectors of each lane side by side, then what is left of the width, one value a lane
    int4* bases;
    unsigned char* codes;
};

/// The row of this lane; lanes behind the last row have an empty one.
template <class Offset>
struct Row {
    Offset begin = 0;
    Offset length = 0;
};
template <class T, class Offset>
__device__ __forceinline__ Row<Offset> load_row(const Matrix<T, Offset>& a, std::int64_t row)
{
    Row<Offset> r;
    if (row < a.rows) {
        r.begin = __ldg(a.row_ptr + row);
        r.length = __ldg(a.row_ptr + row + 1) - r.begin;
    }
    return r;
}
template <class Offset>
__device__ __forceinline__ int stored_length(const Row<Offset>& row)
{
    return row.length <= sell_tuning.longest_row ? static_cast<int>(row.length) : 0;
}

/// Finds width and code of each slice, one warp a slice.
template <class T, class Offset>
__global__ void __launch_bounds__(threads) measure_kernel(const Matrix<T, Offset> a, std::int64_t slices)
{
    const std::int64_t slice = std::int64_t{blockIdx.x} * slices_per_block + threadIdx.x / slice_rows;
    const int lane = static_cast<int>(threadIdx.x) % slice_rows;
    if (slice >= slices) {
        return;
    }
    const Row<Offset> row = load_row(a, slice * slice_rows + lane);
    const int length = stored_length(row);
    const int width = static_cast<int>(__reduce_max_sync(whole_warp, static_cast<unsigned>(length)));
    const int entries = static_cast<int>(__reduce_add_sync(whole_warp, static_cast<unsigned>(length)));
    const bool uniform = __all_sync(whole_warp, row.length == width) != 0;
    SliceCode code = SliceCode::csr;
    if (slice_is_stored(entries, width)) {
        constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
        constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min();
        const std::int32_t* columns = a.col_idx + row.begin;
        SliceColumns common;
        for (int k = 0; k < width; k += slice_group) {
            std::int32_t column[slice_group];
#pragma unroll
            for (int j = 0; j < slice_group; ++j) {
                column[j] = k + j < length ? __ldg(columns + k + j) : 0;
            }
#pragma unroll
            for (int j = 0; j < slice_group; ++j) {
                if (k + j < width) {
                    const bool in = k + j < length;
                    const std::int32_t c = column[j];
                    const std::int32_t first = __reduce_min_sync(whole_warp, in ? c : most);
                    const std::int32_t last = __reduce_max_sync(whole_warp, in ? c : least);
                    const std::int32_t leftmost = __reduce_min_sync(whole_warp, in ? c - lane : most);
                    const std::int32_t rightmost = __reduce_max_sync(whole_warp, in ? c - lane : least);
                    common.spread = max(common.spread, last - first);
                    common.skew = max(common.skew, rightmost - leftmost);
                }
            }
        }
        code = slice_code(common);
    }
    if (lane == 0) {
        a.slices[slice] = sized_slice(width, code, uniform);
    }
}

/// Inclusive sum over the block; `warp_sums` has an entry a warp and is free again after the next barrier.
__device__ __forceinline__ std::int64_t block_prefix(std::int64_t value, std::int64_t* warp_sums)
{
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    for (int offset = 1; offset < 32; offset *= 2) {
        const std::int64_t left = __shfl_up_sync(whole_warp, value, offset);
        value += lane >= offset ? left : 0;
    }
    if (lane == 31) {
        warp_sums[warp] = value;
    }
    __syncthreads();
    if (warp == 0) {
        std::int64_t sum = warp_sums[lane];
        for (int offset = 1; offset < 32; offset *= 2) {
            const std::int64_t left = __shfl_up_sync(whole_warp, sum, offset);
            sum += lane >= offset ? left : 0;
        }
        warp_sums[lane] = sum;
    }
    __syncthreads();
    return value + (warp > 0 ? warp_sums[warp - 1] : 0);
}

/// Turns sizes into positions, by one block: there is one slice for 32 rows, so this is little beside the other kernels.
/// Positions beyond 32 bits are cut off; `total` tells.
__global__ void __launch_bounds__(scan_threads) place_kernel(Slice* slices, std::int64_t count, SellExtent* total)
{
    constexpr int per_thread = 4;
    static_assert(scan_threads == 32 * 32);
    __shared__ std::int64_t value_sums[32];
    __shared__ std::int64_t base_sums[32];
    __shared__ std::int64_t code_sums[32];
    SellExtent before;
    for (std::int64_t first = 0; first < count; first += scan_threads * per_thread) {
        const std::int64_t own = first + std::int64_t{threadIdx.x} * per_thread;
        Slice slice[per_thread];
        SellExtent sum;
#pragma unroll
        for (int i = 0; i < per_thread; ++i) {
            if (own + i < count) {
                slice[i] = slices[own + i];
                sum.values += slice[i].values;
                sum.bases += slice[i].bases;
                sum.codes += slice[i].codes;
            }
        }
        SellExtent end{block_prefix(sum.values, value_sums), block_prefix(sum.bases, base_sums),
                       block_prefix(sum.codes, code_sums)};
        SellExtent at{before.values + end.values - sum.values, before.bases + end.bases - sum.bases,
                      before.codes + end.codes - sum.codes};
#pragma unroll
        for (int i = 0; i < per_thread; ++i) {
            if (own + i < count) {
                Slice placed = slice[i];
                placed.values = static_cast<std::uint32_t>(at.values);
                placed.bases = static_cast<std::uint32_t>(at.bases);
                placed.codes = static_cast<std::uint32_t>(at.codes);
                slices[own + i] = placed;
                at.values += slice[i].values;
                at.bases += slice[i].bases;
                at.codes += slice[i].codes;
            }
        }
        before.values += value_sums[31];
        before.bases += base_sums[31];
        before.codes += code_sums[31];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        *total = before;
    }
}

template <class T, class Offset>
__device__ __forceinline__ T* slice_values(const Matrix<T, Offset>& a, const Slice& slice)
{
    return a.values + std::int64_t{slice.values} * slice_rows;
}
template <class T, class Offset>
__device__ __forceinline__ unsigned char* slice_codes(const Matrix<T, Offset>& a, const Slice& slice)
{
    return a.codes + std::int64_t{slice.codes} * code_block_bytes;
}

/// Copies values, and columns if `Structure`, from CSR into the slices, one warp a slice.
template <bool Structure, class T, class Offset>
__global__ void __launch_bounds__(threads) fill_kernel(const Matrix<T, Offset> a, std::int64_t slices)
{
    constexpr int vector = Vector<T>::width;
    const std::int64_t index = std::int64_t{blockIdx.x} * slices_per_block + threadIdx.x / slice_rows;
    const int lane = static_cast<int>(threadIdx.x) % slice_rows;
    if (index >= slices) {
        return;
    }
    const Slice slice = a.slices[index];
    if (slice.code == SliceCode::csr) {
        return;
    }
    const Row<Offset> row = load_row(a, index * slice_rows + lane);
    const int length = stored_length(row);
    const int width = slice.width;
    T* values = slice_values(a, slice);
    for (int k = 0; k < width; k += slice_group) {
        T value[slice_group];
#pragma unroll
        for (int j = 0; j < slice_group; ++j) {
            value[j] = k + j < length ? __ldcs(a.entries + row.begin + (k + j)) : T{0};
        }
#pragma unroll
        for (int v = 0; v < slice_group; v += vector) {
            if (k + v + vector <= width) {
                reinterpret_cast<typename Vector<T>::type*>(values + (k + v) * slice_rows)[lane] = pack(value + v);
            } else {
#pragma unroll
                for (int j = v; j < v + vector; ++j) {
                    if (k + j < width) {
                        values[(k + j) * slice_rows + lane] = value[j];
                    }
                }
            }
        }
        if constexpr (Structure) {
            const int group = k / slice_group;
            std::int32_t base[slice_group] = {};
            std::uint32_t code[slice_group] = {};
#pragma unroll
            for (int j = 0; j < slice_group; ++j) {
                if (k + j < width) {
                    const bool in = k + j < length;
                    const std::int32_t column = in ? __ldcs(a.col_idx + row.begin + (k + j)) : 0;
                    const std::int32_t shifted = slice.code == SliceCode::diagonal ? column - lane : column;
                    base[j] =
                        slice.code == SliceCode::bytes4
                            ? 0
                            : __reduce_min_sync(whole_warp, in ? shifted : std::numeric_limits<std::int32_t>::max());
                    code[j] = in ? static_cast<std::uint32_t>(shifted - base[j]) : 0u;
                }
            }
            unsigned char* codes = slice_codes(a, slice) + group * code_block_bytes * code_bytes(slice.code);
            if (slice.code == SliceCode::bytes1) {
                reinterpret_cast<std::uint32_t*>(codes)[lane] = code[0] | code[1] << 8 | code[2] << 16 | code[3] << 24;
            } else if (slice.code == SliceCode::bytes2) {
                reinterpret_cast<uint2*>(codes)[lane] = {code[0] | code[1] << 16, code[2] | code[3] << 16};
            } else if (slice.code == SliceCode::bytes4) {
                reinterpret_cast<uint4*>(codes)[lane] = {code[0], code[1], code[2], code[3]};
            }
            if (slice.code != SliceCode::bytes4 && lane == 0) {
                a.bases[std::int64_t{slice.bases} + group] = {base[0], base[1], base[2], base[3]};
            }
        }
    }
}

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
__device__ T csr_row_sum(const Matrix<T, Offset>& a, const Row<Offset>& row, const T* __restrict__ x)
{
    const std::int32_t* columns = a.col_idx + row.begin;
    const T* entries = a.entries + row.begin;
    const int length = stored_length(row);
    T sum = 0;
#pragma unroll 4
    for (int k = 0; k < length; ++k) {
        sum = fma(__ldg(entries + k), __ldg(x + __ldg(columns + k)), sum);
    }
    return sum;
}

/// The long rows of a slice, one after the other by the whole warp; `sum` of the lanes whose rows they are.
template <class T, class Offset>
__device__ T add_long_rows(const Matrix<T, Offset>& a, const Row<Offset>& row, T sum, int lane, const T* __restrict__ x)
{
    unsigned left = __ballot_sync(whole_warp, row.length > sell_tuning.longest_row);
    while (left != 0) {
        const int owner = __ffs(static_cast<int>(left)) - 1;
        left &= left - 1;
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

/// One warp a slice. The additions of a row depend on the row alone, neither on its slice nor on how that is stored.
template <class T, class Offset>
__global__ void __launch_bounds__(threads, sell_tuning.blocks_per_multiprocessor)
    sell_kernel(const Matrix<T, Offset> a, std::int64_t slices, T alpha, const T* __restrict__ x, T beta,
                T* __restrict__ y)
{
    const std::int64_t index = std::int64_t{blockIdx.x} * slices_per_block + threadIdx.x / slice_rows;
    const int lane = static_cast<int>(threadIdx.x) % slice_rows;
    if (index >= slices) {
        return;
    }
    const Slice slice = a.slices[index];
    const std::int64_t row_index = index * slice_rows + lane;
    Row<Offset> row;
    int length = slice.width;
    if (!slice.uniform) {
        row = load_row(a, row_index);
        length = stored_length(row);
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
            sum = csr_row_sum(a, row, x);
            break;
    }
    if (!slice.uniform) {
        sum = add_long_rows(a, row, sum, lane, x);
    }
    if (row_index < a.rows) {
        y[row_index] = beta == T{0} ? alpha * sum : alpha * sum + beta * y[row_index];
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
        slices_ = DeviceArray<Slice>(*context.memory, static_cast<std::size_t>(slices_count_));
        const DeviceArray<SellExtent> total(*context.memory, 1);
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
        if (slices_count_ == 0) {
            return;
        }
        sell_kernel<<<static_cast<unsigned>(blocks()), threads, 0, static_cast<cudaStream_t>(context.stream)>>>(
            matrix(), slices_count_, alpha, x, beta, y);
        RMSP_CUDA_CHECK_LAUNCH("sell");
    }

    void update_values(const Context& context) override { fill<false>(static_cast<cudaStream_t>(context.stream)); }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(slices_.size() * sizeof(Slice) + values_.size() * sizeof(T) +
                                         bases_.size() * sizeof(int4) + codes_.size());
    }

private:
    std::int64_t blocks() const { return (slices_count_ + slices_per_block - 1) / slices_per_block; }

    Matrix<T, Offset> matrix() const
    {
        return {shard_.rows,    row_ptr_,       shard_.col_idx, shard_.values,
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
