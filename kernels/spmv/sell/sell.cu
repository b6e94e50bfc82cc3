#include <algorithm>
#include <bit>
#include <limits>
#include <string>
#include <utility>

#include <cub/device/device_scan.cuh>
#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/spmv/sell/sell.hpp>
#include <kernels/spmv/sell/sell_build.cuh>
#include <kernels/spmv/sell/sell_values.cuh>
#include <kernels/spmv/sell_reordered/reorder.hpp>
#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {
namespace {

using namespace sell;

/// As the product sees it: few row pointers are read.
template <class T>
using Stored = Matrix<T, EitherPointers>;

// How a lane reads the values of its entries k, ..., k + 3, all of which are inside the slice if `Whole`. More loads in
// flight cost registers, and full occupancy gains more.

/// Values of a slice that is stored as V: vectors of each lane side by side.
template <class V>
struct PlainValues {
    const V* values;

    template <bool Whole, class T>
    __device__ __forceinline__ void load(int k, int width, int lane, T* value) const
    {
        constexpr int vector = Vector<V>::width;
        V stored[slice_group];
#pragma unroll
        for (int v = 0; v < slice_group; v += vector) {
            if (Whole || k + v + vector <= width) {
                // Each is used once: evicted first, so that x stays in the caches.
                unpack(__ldcs(reinterpret_cast<const typename Vector<V>::type*>(values + (k + v) * slice_rows) + lane),
                       stored + v);
            } else {
#pragma unroll
                for (int j = v; j < v + vector; ++j) {
                    stored[j] = k + j < width ? __ldcs(values + (k + j) * slice_rows + lane) : V{0};
                }
            }
        }
#pragma unroll
        for (int j = 0; j < slice_group; ++j) {
            value[j] = static_cast<T>(stored[j]);
        }
    }
};

/// One value for each k, in whole groups.
template <class T>
struct UniformValues {
    const T* table;

    template <bool Whole>
    __device__ __forceinline__ void load(int k, int /*width*/, int /*lane*/, T* value) const
    {
        constexpr int vector = Vector<T>::width;
#pragma unroll
        for (int v = 0; v < slice_group; v += vector) {
            unpack(__ldg(reinterpret_cast<const typename Vector<T>::type*>(table + k + v)), value + v);
        }
    }
};

/// Indices of a group of each lane, side by side, into a table.
template <class T, class Indices>
struct TableValues {
    static constexpr int bits = 8 * sizeof(Indices) / slice_group;
    const Indices* indices;
    const T* table;

    template <bool Whole>
    __device__ __forceinline__ void load(int k, int /*width*/, int lane, T* value) const
    {
        const unsigned packed = __ldcs(indices + k / slice_group * slice_rows + lane);
#pragma unroll
        for (int j = 0; j < slice_group; ++j) {
            value[j] = __ldg(table + (packed >> bits * j & ((1u << bits) - 1)));
        }
    }
};

/// Columns of the entries k, ..., k + 3 of this lane. `place`: of its slot, modulo 2^32.
template <SliceCode Code>
__device__ __forceinline__ void load_columns(const int4* bases, const unsigned char* codes, int k, std::uint32_t place,
                                             std::int32_t* column)
{
    const std::uint32_t lane = place % slice_rows;
    const int group = k / slice_group;
    const unsigned char* block = codes + group * slice_block_bytes * code_bytes(Code);
    if constexpr (Code == SliceCode::bytes4) {
        unpack(__ldcs(reinterpret_cast<const int4*>(block) + lane), column);
    } else {
        unpack(__ldg(bases + group), column);
        if constexpr (Code == SliceCode::diagonal || Code == SliceCode::masked) {
#pragma unroll
            for (int j = 0; j < slice_group; ++j) {
                column[j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(column[j]) + place);
            }
        } else if constexpr (Code == SliceCode::bytes1) {
            const unsigned code = __ldcs(reinterpret_cast<const unsigned*>(block) + lane);
#pragma unroll
            for (int j = 0; j < slice_group; ++j) {
                column[j] += static_cast<std::int32_t>(code >> 8 * j & 0xffu);
            }
        } else if constexpr (Code == SliceCode::bytes2) {
            const uint2 code = __ldcs(reinterpret_cast<const uint2*>(block) + lane);
            column[0] += static_cast<std::int32_t>(code.x & 0xffffu);
            column[1] += static_cast<std::int32_t>(code.x >> 16);
            column[2] += static_cast<std::int32_t>(code.y & 0xffffu);
            column[3] += static_cast<std::int32_t>(code.y >> 16);
        }
    }
}

/// Whether the row of a lane has entry k.
/// \param own  length of the row, or a bit for each entry
template <SliceCode Code>
__device__ __forceinline__ bool has_entry(int own, int k)
{
    return Code == SliceCode::masked ? (own >> k & 1) != 0 : k < own;
}

/// Adds the entries k, ..., k + 3 of this lane to `sum`, in their order; all of them are inside the slice if `Whole`.
/// Padding is never multiplied: x may hold what is not finite.
template <SliceCode Code, bool Whole, class Values, class T>
__device__ __forceinline__ T add_group(T sum, const Values& values, const int4* bases, const unsigned char* codes,
                                       int k, int width, int own, std::uint32_t place, const T* __restrict__ x)
{
    T value[slice_group];
    T gathered[slice_group];
    std::int32_t column[slice_group];
    bool in[slice_group];
    values.template load<Whole>(k, width, static_cast<int>(place % slice_rows), value);
    load_columns<Code>(bases, codes, k, place, column);
#pragma unroll
    for (int j = 0; j < slice_group; ++j) {
        in[j] = has_entry<Code>(own, k + j);
        gathered[j] = in[j] ? __ldg(x + column[j]) : T{0};
    }
#pragma unroll
    for (int j = 0; j < slice_group; ++j) {
        if (in[j]) {
            sum = fma(value[j], gathered[j], sum);
        }
    }
    return sum;
}

template <SliceCode Code, class Values, class T>
__device__ __forceinline__ T slice_row_sum(const Stored<T>& a, const Slice& slice, const Values& values, int own,
                                           std::uint32_t place, const T* __restrict__ x)
{
    const int4* bases = a.bases + slice.bases;
    const unsigned char* codes = slice_codes(a, slice);
    const int width = slice.width;
    T sum = 0;
    int k = 0;
    for (; k + slice_group <= width; k += slice_group) {
        sum = add_group<Code, true>(sum, values, bases, codes, k, width, own, place, x);
    }
    if (k < width) {
        sum = add_group<Code, false>(sum, values, bases, codes, k, width, own, place, x);
    }
    return sum;
}

template <class Values, class T>
__device__ __forceinline__ T row_sum(const Stored<T>& a, const Slice& slice, const Values& values, int own,
                                     std::uint32_t place, const T* __restrict__ x)
{
    switch (slice.code) {
        case SliceCode::diagonal:
            return slice_row_sum<SliceCode::diagonal>(a, slice, values, own, place, x);
        case SliceCode::masked:
            return slice_row_sum<SliceCode::masked>(a, slice, values, own, place, x);
        case SliceCode::bytes1:
            return slice_row_sum<SliceCode::bytes1>(a, slice, values, own, place, x);
        case SliceCode::bytes2:
            return slice_row_sum<SliceCode::bytes2>(a, slice, values, own, place, x);
        default:
            return slice_row_sum<SliceCode::bytes4>(a, slice, values, own, place, x);
    }
}

/// row_sum() of a slice whose values may be encoded.
template <class T>
__device__ __forceinline__ T decoded_row_sum(const Stored<T>& a, const Slice& slice, int own, std::uint32_t place,
                                             const T* __restrict__ x)
{
    const unsigned char* const values = slice_values(a, slice);
    const int width = slice.width;
    const auto table = [&] {
        return reinterpret_cast<const T*>(values + whole_blocks(index_bytes(slice.stored, width)) * slice_block_bytes);
    };
    switch (slice.stored) {
        case SliceValues::uniform:
            return row_sum(a, slice, UniformValues<T>{reinterpret_cast<const T*>(values)}, own, place, x);
        case SliceValues::nibbles:
            return row_sum(a, slice,
                           TableValues<T, unsigned short>{reinterpret_cast<const unsigned short*>(values), table()},
                           own, place, x);
        case SliceValues::bytes:
            return row_sum(a, slice, TableValues<T, unsigned>{reinterpret_cast<const unsigned*>(values), table()}, own,
                           place, x);
        case SliceValues::floats:
            if constexpr (sizeof(T) > sizeof(float)) {
                return row_sum(a, slice, PlainValues<float>{reinterpret_cast<const float*>(values)}, own, place, x);
            }
        default:
            return row_sum(a, slice, PlainValues<T>{reinterpret_cast<const T*>(values)}, own, place, x);
    }
}

/// The same additions in the same order as in a slice.
template <class T>
__device__ T csr_row_sum(const Stored<T>& a, std::int64_t row, int length, const T* __restrict__ x)
{
    const std::int64_t begin = load_row(a, row).begin;
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
template <class T>
__device__ T add_long_rows(const Stored<T>& a, unsigned long_rows, std::int64_t row_index, T sum, int lane,
                           const T* __restrict__ x)
{
    const Row row = load_row(a, row_index);
    for (; long_rows != 0; long_rows &= long_rows - 1) {
        const int owner = __ffs(static_cast<int>(long_rows)) - 1;
        const std::int64_t begin = __shfl_sync(whole_warp, row.begin, owner);
        const std::int64_t length = __shfl_sync(whole_warp, row.length, owner);
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

/// Stores one entry of lines that other warps fill later: until then the L2 keeps them, rather than have the memory
/// merge parts.
__device__ __forceinline__ void store_lasting(double* to, double value)
{
    asm volatile(
        "{ .reg .b64 last; createpolicy.fractional.L2::evict_last.b64 last, 1.0;"
        " st.global.L2::cache_hint.f64 [%0], %1, last; }" ::"l"(to),
        "d"(value)
        : "memory");
}
__device__ __forceinline__ void store_lasting(float* to, float value)
{
    asm volatile(
        "{ .reg .b64 last; createpolicy.fractional.L2::evict_last.b64 last, 1.0;"
        " st.global.L2::cache_hint.f32 [%0], %1, last; }" ::"l"(to),
        "f"(value)
        : "memory");
}

/// Asks for the line of headers, of eight slices, that a warp `ahead` slices later needs first. Not for more: what the
/// slices themselves take arrives no sooner for being asked for twice.
__device__ __forceinline__ void prefetch_headers(const Slice* slices, std::int64_t index, std::int64_t ahead,
                                                 std::int64_t end, int lane)
{
    constexpr int line = 128 / sizeof(Slice);
    if (lane == 0 && index % line == 0 && index + ahead < end) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(slices + index + ahead));
    }
}

/// One warp a slice of [first, slices), with the headers of those that are `ahead` slices away asked for. The additions
/// of a row depend on the row alone, neither on its slice nor on how that is stored. What is not there costs registers
/// if it is compiled in, so values are raw unless `Encoded`, and nothing is left in CSR unless `Left`.
template <bool Encoded, bool Left, class T>
__global__ void __launch_bounds__(threads, Encoded&& Left ? sell_tuning.blocks_with_everything
                                                          : sell_tuning.blocks_per_multiprocessor)
    sell_kernel(const Stored<T> a, std::int64_t first, std::int64_t slices, std::int64_t ahead, T alpha,
                const T* __restrict__ x, T beta, T* __restrict__ y, const std::int32_t* __restrict__ y_row)
{
    const std::int64_t index = first + std::int64_t{blockIdx.x} * slices_per_block + threadIdx.x / slice_rows;
    const int lane = static_cast<int>(threadIdx.x) % slice_rows;
    if (index >= slices) {
        return;
    }
    // One load: the compiler would make one of each of the short members.
    const auto slice = std::bit_cast<Slice>(__ldg(reinterpret_cast<const uint4*>(a.slices + index)));
    prefetch_headers(a.slices, index, ahead, slices, lane);
    const auto place = static_cast<std::uint32_t>(index * slice_rows + lane);
    std::int64_t row = index * slice_rows + lane;
    int own = slice.width;  // entries, or a bit for each
    unsigned long_rows = 0;
    if (!slice.plain) {
        const Slot slot = a.slots[row];
        if (slice.code == SliceCode::masked) {
            own = std::bit_cast<int>(slot);
        } else {
            row = row_of(index, slot);
            own = stored_length(slot);
            long_rows = Left ? __ballot_sync(whole_warp, slot.length == long_row) : 0;
        }
    }
    T sum = 0;
    if (Left && slice.code == SliceCode::csr) {
        sum = csr_row_sum(a, row, own, x);
    } else if constexpr (Encoded) {
        sum = decoded_row_sum(a, slice, own, place, x);
    } else {
        sum = row_sum(a, slice, PlainValues<T>{reinterpret_cast<const T*>(slice_values(a, slice))}, own, place, x);
    }
    if (Left && long_rows != 0) {
        sum = add_long_rows(a, long_rows, row, sum, lane, x);
    }
    if (row >= a.rows) {
        return;
    }
    if (y_row == nullptr) {
        y[row] = beta == T{0} ? alpha * sum : alpha * sum + beta * y[row];
    } else {
        T* const to = y + __ldg(y_row + row);
        store_lasting(to, beta == T{0} ? alpha * sum : alpha * sum + beta * *to);
    }
}

template <class T, class Offset>
class Sell final : public ScatteringSpmv<T> {
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
        const DeviceArray<ValueSize> sizes(*context.memory, slices_.size());
        const DeviceArray<Found> on_device(*context.memory, 1);
        RMSP_CUDA_CHECK(cudaMemsetAsync(on_device.data(), 0, sizeof(Found), stream));
        sort_kernel<<<static_cast<unsigned>((shard.rows + sort_rows - 1) / sort_rows), sort_rows, 0, stream>>>(
            matrix(), slices_count_);
        RMSP_CUDA_CHECK_LAUNCH("sort_kernel");
        measure_kernel<<<static_cast<unsigned>(blocks()), threads, 0, stream>>>(matrix(), slices_count_,
                                                                                &on_device.data()->left);
        RMSP_CUDA_CHECK_LAUNCH("measure_kernel");
        place_kernel<<<1, scan_threads, 0, stream>>>(slices_.data(), nullptr, slices_count_, &on_device.data()->extent);
        RMSP_CUDA_CHECK_LAUNCH("place_kernel");
        examine(true, sizes, on_device, stream);
        const Found found = read(on_device, stream);
        const SellExtent& extent = found.extent;
        left_ = found.left != 0;
        if (!fits_slice_positions(extent)) {
            throw Error(ErrorCode::usage, "sell: " + std::to_string(extent.values) + " times 128 bytes of values of " +
                                              std::to_string(shard.rows) + " rows and " + std::to_string(shard.nnz) +
                                              " nonzeros are more than 2^32 - 1 positions");
        }
        bases_ = DeviceArray<int4>(*context.memory, static_cast<std::size_t>(extent.bases));
        codes_ =
            DeviceArray<unsigned char>(*context.memory, static_cast<std::size_t>(extent.codes) * slice_block_bytes);
        store_values<true>(found, sizes, on_device, context);
        share_bases(extent.bases, context);
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        launch(0, slices_count_, alpha, x, beta, y, nullptr, context);
    }

    void apply_to(T alpha, const T* x, T beta, T* y, const std::int32_t* y_row, const Context& context) override
    {
        launch(0, slices_count_, alpha, x, beta, y, y_row, context);
    }

    std::int64_t row_granule() const override { return sort_rows; }

    void apply_rows(std::int64_t first, std::int64_t end, T alpha, const T* x, T beta, T* y,
                    const Context& context) override
    {
        launch(first / slice_rows, (end + slice_rows - 1) / slice_rows, alpha, x, beta, y, nullptr, context);
    }

    void update_values(const Context& context) override
    {
        if (slices_count_ > 0) {
            const auto stream = static_cast<cudaStream_t>(context.stream);
            const DeviceArray<ValueSize> sizes(*context.memory, slices_.size());
            const DeviceArray<Found> on_device(*context.memory, 1);
            RMSP_CUDA_CHECK(cudaMemsetAsync(on_device.data(), 0, sizeof(Found), stream));
            examine(true, sizes, on_device, stream);
            store_values<false>(read(on_device, stream), sizes, on_device, context);
        }
    }

    std::int64_t format_bytes() const override
    {
        // Slots are read for some slices only, and what stays in CSR is at least what the slices have no room for.
        const auto left = std::max<std::int64_t>(0, shard_.nnz - stored_entries_);
        return workspace_bytes() - static_cast<std::int64_t>(slots_.size() * sizeof(Slot)) +
               left * static_cast<std::int64_t>(sizeof(T) + sizeof(std::int32_t));
    }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(slots_.size() * sizeof(Slot) + slices_.size() * sizeof(Slice) +
                                         values_.size() + bases_.size() * sizeof(int4) + codes_.size());
    }

private:
    static std::int64_t blocks_for(std::int64_t slices) { return (slices + slices_per_block - 1) / slices_per_block; }
    std::int64_t blocks() const { return blocks_for(slices_count_); }

    void launch(std::int64_t first, std::int64_t end, T alpha, const T* x, T beta, T* y, const std::int32_t* y_row,
                const Context& context) const
    {
        if (first >= end) {
            return;
        }
        const auto kernel = encoded_ ? (left_ ? sell_kernel<true, true, T> : sell_kernel<true, false, T>)
                                     : (left_ ? sell_kernel<false, true, T> : sell_kernel<false, false, T>);
        const std::int64_t wave =
            std::int64_t{context.compute_units} * sell_tuning.blocks_per_multiprocessor * slices_per_block;
        kernel<<<static_cast<unsigned>(blocks_for(end - first)), threads, 0,
                 static_cast<cudaStream_t>(context.stream)>>>(stored(), first, end, wave, alpha, x, beta, y, y_row);
        RMSP_CUDA_CHECK_LAUNCH("sell");
    }

    template <class Pointers>
    Matrix<T, Pointers> with(Pointers row_ptr) const
    {
        return {shard_.rows,    row_ptr,        shard_.col_idx, shard_.values, slots_.data(),
                slices_.data(), values_.data(), bases_.data(),  codes_.data()};
    }
    Matrix<T, const Offset*> matrix() const { return with(row_ptr_); }
    Stored<T> stored() const { return with(EitherPointers{row_ptr_, sizeof(Offset) == sizeof(std::int64_t)}); }

    /// What the kernels that examine the matrix find.
    struct Found {
        unsigned left = 0;  ///< whether something stays in CSR
        SellExtent extent;
        unsigned long long encoded_blocks = 0;  ///< of values
        unsigned long long raw_blocks = 0;
    };

    void examine(bool encode, const DeviceArray<ValueSize>& sizes, const DeviceArray<Found>& found,
                 cudaStream_t stream) const
    {
        examine_kernel<<<static_cast<unsigned>(blocks()), threads, 0, stream>>>(
            matrix(), slices_count_, encode, sizes.data(), &found.data()->encoded_blocks, &found.data()->raw_blocks);
        RMSP_CUDA_CHECK_LAUNCH("examine_kernel");
    }

    static Found read(const DeviceArray<Found>& on_device, cudaStream_t stream)
    {
        Found found;
        RMSP_CUDA_CHECK(cudaMemcpyAsync(&found, on_device.data(), sizeof found, cudaMemcpyDeviceToHost, stream));
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
        return found;
    }

    /// Decides how the values are stored, makes room for them, and copies them, with the columns if `Structure`. The
    /// operator is as it was if there is no room.
    template <bool Structure>
    void store_values(const Found& found, const DeviceArray<ValueSize>& sizes, const DeviceArray<Found>& on_device,
                      const Context& context)
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        const unsigned long long small = found.encoded_blocks;
        const unsigned long long raw = found.raw_blocks;
        const bool encode = values_are_encoded(static_cast<std::int64_t>(small), static_cast<std::int64_t>(raw));
        const std::size_t bytes = (encode ? small : raw) * slice_block_bytes;
        if (values_.size() != bytes) {
            values_ = DeviceArray<unsigned char>(*context.memory, bytes);
        }
        if (encode || encoded_) {
            if (!encode) {
                examine(false, sizes, on_device, stream);
            }
            place_kernel<<<1, scan_threads, 0, stream>>>(slices_.data(), sizes.data(), slices_count_,
                                                         &on_device.data()->extent);
            RMSP_CUDA_CHECK_LAUNCH("place_kernel");
        }
        encoded_ = encode;
        stored_entries_ = static_cast<std::int64_t>(raw * slice_block_bytes / sizeof(T));
        if (raw == 0) {
            return;
        }
        fill_kernel<Structure><<<static_cast<unsigned>(blocks()), threads, 0, stream>>>(matrix(), slices_count_);
        RMSP_CUDA_CHECK_LAUNCH("fill_kernel");
        if (encoded_) {
            encode_kernel<<<static_cast<unsigned>(blocks()), threads, 0, stream>>>(matrix(), slices_count_);
            RMSP_CUDA_CHECK_LAUNCH("encode_kernel");
        }
    }

    /// Stores the bases of neighbouring slices that have the same ones once. Waits for the stream.
    void share_bases(std::int64_t groups, const Context& context)
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        Memory& memory = *context.memory;
        const DeviceArray<std::uint32_t> positions(memory, slices_.size() + 1);
        compare_kernel<<<static_cast<unsigned>(blocks()), threads, 0, stream>>>(slices_.data(), slices_count_,
                                                                                bases_.data(), positions.data());
        RMSP_CUDA_CHECK_LAUNCH("compare_kernel");
        std::size_t bytes = 0;
        RMSP_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(nullptr, bytes, positions.data(), positions.data(),
                                                      slices_count_ + 1, stream));
        const DeviceArray<std::byte> space(memory, bytes);
        RMSP_CUDA_CHECK(cudaMemsetAsync(positions.data() + slices_count_, 0, sizeof(std::uint32_t), stream));
        RMSP_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(space.data(), bytes, positions.data(), positions.data(),
                                                      slices_count_ + 1, stream));
        std::uint32_t left = 0;
        RMSP_CUDA_CHECK(
            cudaMemcpyAsync(&left, positions.data() + slices_count_, sizeof left, cudaMemcpyDeviceToHost, stream));
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
        if (left == groups) {
            return;
        }
        DeviceArray<int4> shared(memory, left);
        move_bases_kernel<<<static_cast<unsigned>(blocks()), threads, 0, stream>>>(
            slices_.data(), slices_count_, bases_.data(), positions.data(), shared.data());
        RMSP_CUDA_CHECK_LAUNCH("move_bases_kernel");
        bases_ = std::move(shared);
    }

    CsrShard<T> shard_;
    const Offset* row_ptr_;
    std::int64_t slices_count_;
    DeviceArray<Slot> slots_;
    DeviceArray<Slice> slices_;
    DeviceArray<unsigned char> values_;
    DeviceArray<int4> bases_;
    DeviceArray<unsigned char> codes_;
    std::int64_t stored_entries_ = 0;  ///< of the slices, with their padding
    bool encoded_ = false;
    bool left_ = false;  ///< long rows, or slices that are not stored
};

}  // namespace

template <class T>
std::unique_ptr<ScatteringSpmv<T>> prepare_scattering_sell(const CsrShard<T>& shard, const Context& context)
{
    if (shard.row_ptr.type() == IndexType::i32) {
        return std::make_unique<Sell<T, std::int32_t>>(shard, static_cast<const std::int32_t*>(shard.row_ptr.data()),
                                                       context);
    }
    return std::make_unique<Sell<T, std::int64_t>>(shard, static_cast<const std::int64_t*>(shard.row_ptr.data()),
                                                   context);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_sell(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                              const Context& context)
{
    return prepare_scattering_sell(shard, context);
}

template std::unique_ptr<ScatteringSpmv<float>> prepare_scattering_sell(const CsrShard<float>&, const Context&);
template std::unique_ptr<ScatteringSpmv<double>> prepare_scattering_sell(const CsrShard<double>&, const Context&);
template std::unique_ptr<SpmvOperator<float>> prepare_sell(const CsrShard<float>&, const RowStatistics&,
                                                           const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_sell(const CsrShard<double>&, const RowStatistics&,
                                                            const Context&);

}  // namespace rmsp::kernels
