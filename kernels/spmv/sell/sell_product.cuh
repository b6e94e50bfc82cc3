#pragma once

#include <bit>
#include <cstdint>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_launch.cuh>
#include <kernels/spmv/sell/layout.hpp>
#include <kernels/spmv/sell/sell_build.cuh>
#include <kernels/spmv/sell/sell_values.cuh>

/// The product of kernel "sell": a warp a slice.
namespace rmsp::kernels::sell {

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

/// Columns of the entries k, ..., k + 3 of this lane, as far as the slice has them; all of them if `Whole`. `place`: of
/// its slot, modulo 2^32.
template <SliceCode Code, bool Whole>
__device__ __forceinline__ void load_columns(const int4* bases, const unsigned char* codes, int k, int width,
                                             std::uint32_t place, std::int32_t* column)
{
    const std::uint32_t lane = place % slice_rows;
    const int group = k / slice_group;
    const unsigned char* block = codes + group * slice_block_bytes * code_bytes(Code);
    if constexpr (Code == SliceCode::bytes4) {
        if (Whole || k + slice_group <= width) {
            unpack(__ldcs(reinterpret_cast<const int4*>(block) + lane), column);
        } else {
#pragma unroll
            for (int j = 0; j < slice_group; ++j) {
                column[j] =
                    k + j < width ? __ldcs(reinterpret_cast<const std::int32_t*>(block) + j * slice_rows + lane) : 0;
            }
        }
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
            uint2 code{};
            if (Whole || k + slice_group / 2 < width) {
                code = __ldcs(reinterpret_cast<const uint2*>(block) + lane);
            } else {
                code.x = __ldcs(reinterpret_cast<const unsigned*>(block) + lane);
            }
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
    return Code == SliceCode::masked ? k < slice_rows && (own >> k & 1) != 0 : k < own;
}

/// Adds the entries of `Groups` groups from k on of this lane to `sum`, in their order, as far as the slice has them;
/// all are inside the slice if `Whole`. Columns and values of all of them are asked for before the first entry of x is.
/// Padding is never multiplied: x may hold what is not finite.
template <int Groups, SliceCode Code, bool Whole, class Values, class T>
__device__ __forceinline__ T add_groups(T sum, const Values& values, const int4* bases, const unsigned char* codes,
                                        int k, int width, int own, std::uint32_t place, const T* __restrict__ x)
{
    constexpr int entries = Groups * slice_group;
    T value[entries];
    T gathered[entries];
    std::int32_t column[entries];
    bool in[entries];
#pragma unroll
    for (int g = 0; g < entries; g += slice_group) {
        if (Whole || g == 0 || k + g < width) {
            values.template load<Whole>(k + g, width, static_cast<int>(place % slice_rows), value + g);
            load_columns<Code, Whole>(bases, codes, k + g, width, place, column + g);
        }
    }
#pragma unroll
    for (int j = 0; j < entries; ++j) {
        in[j] = has_entry<Code>(own, k + j);
        gathered[j] = in[j] ? __ldg(x + column[j]) : T{0};
    }
#pragma unroll
    for (int j = 0; j < entries; ++j) {
        if (in[j]) {
            sum = fma(value[j], gathered[j], sum);
        }
    }
    return sum;
}

template <int Groups, SliceCode Code, class Values, class T>
__device__ __forceinline__ T slice_row_sum(const Stored<T>& a, const Slice& slice, const Values& values, int own,
                                           std::uint32_t place, const T* __restrict__ x)
{
    constexpr int step = Groups * slice_group;
    const int4* bases = a.bases + slice.bases;
    const unsigned char* codes = slice_codes(a, slice);
    const int width = slice.width;
    T sum = 0;
    int k = 0;
    for (; k + step <= width; k += step) {
        sum = add_groups<Groups, Code, true>(sum, values, bases, codes, k, width, own, place, x);
    }
    if (k < width) {
        sum = add_groups<Groups, Code, false>(sum, values, bases, codes, k, width, own, place, x);
    }
    return sum;
}

template <int Groups, class Values, class T>
__device__ __forceinline__ T row_sum(const Stored<T>& a, const Slice& slice, const Values& values, int own,
                                     std::uint32_t place, const T* __restrict__ x)
{
    switch (slice.code) {
        case SliceCode::diagonal:
            return slice_row_sum<Groups, SliceCode::diagonal>(a, slice, values, own, place, x);
        case SliceCode::masked:
            return slice_row_sum<Groups, SliceCode::masked>(a, slice, values, own, place, x);
        case SliceCode::bytes1:
            return slice_row_sum<Groups, SliceCode::bytes1>(a, slice, values, own, place, x);
        case SliceCode::bytes2:
            return slice_row_sum<Groups, SliceCode::bytes2>(a, slice, values, own, place, x);
        default:
            return slice_row_sum<Groups, SliceCode::bytes4>(a, slice, values, own, place, x);
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
            return row_sum<1>(a, slice, UniformValues<T>{reinterpret_cast<const T*>(values)}, own, place, x);
        case SliceValues::nibbles:
            return row_sum<1>(a, slice,
                              TableValues<T, unsigned short>{reinterpret_cast<const unsigned short*>(values), table()},
                              own, place, x);
        case SliceValues::bytes:
            return row_sum<1>(a, slice, TableValues<T, unsigned>{reinterpret_cast<const unsigned*>(values), table()},
                              own, place, x);
        case SliceValues::floats:
            if constexpr (sizeof(T) > sizeof(float)) {
                return row_sum<1>(a, slice, PlainValues<float>{reinterpret_cast<const float*>(values)}, own, place, x);
            }
        default:
            return row_sum<1>(a, slice, PlainValues<T>{reinterpret_cast<const T*>(values)}, own, place, x);
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
/// \param sums  null, or where each slice leaves the sum of x[i + diagonal] y[i] over its rows
template <int Groups, bool Encoded, bool Left, bool Sums, class T>
__global__ void __launch_bounds__(threads, blocks_at_once(Groups, Encoded&& Left))
    sell_kernel(const Stored<T> a, std::int64_t first, std::int64_t slices, std::int64_t ahead, T alpha,
                const T* __restrict__ x, T beta, T* __restrict__ y, const std::int32_t* __restrict__ y_row,
                std::int64_t diagonal, double* __restrict__ sums)
{
    const std::int64_t index = first + std::int64_t{blockIdx.x} * slices_per_block + threadIdx.x / slice_rows;
    const int lane = static_cast<int>(threadIdx.x) % slice_rows;
    cuda::wait_for_kernel_before();
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
        sum = row_sum<Groups>(a, slice, PlainValues<T>{reinterpret_cast<const T*>(slice_values(a, slice))}, own, place,
                              x);
    }
    if (Left && long_rows != 0) {
        sum = add_long_rows(a, long_rows, row, sum, lane, x);
    }
    if constexpr (Sums) {
        double product = 0;
        if (row < a.rows) {
            const T value = beta == T{0} ? alpha * sum : alpha * sum + beta * y[row];
            y[row] = value;
            product = static_cast<double>(value) * static_cast<double>(__ldg(x + diagonal + row));
        }
        product = cuda::group_sum(product, slice_rows);
        if (lane == 0) {
            sums[index] = product;
        }
        return;
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

}  // namespace rmsp::kernels::sell
