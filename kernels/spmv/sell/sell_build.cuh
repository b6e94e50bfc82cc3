#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include <cuda_runtime.h>
#include <kernels/cuda_block.cuh>
#include <kernels/cuda_vector.cuh>
#include <kernels/spmv/common/row_pointers.cuh>
#include <kernels/spmv/sell/layout.hpp>

/// The arrays of kernel "sell" and the kernels that make them from CSR.
namespace rmsp::kernels::sell {

inline constexpr int threads = sell_tuning.threads;
inline constexpr int slices_per_block = threads / slice_rows;
inline constexpr unsigned whole_warp = 0xffffffffu;
inline constexpr int longest_row = slice_policy.longest_row;
inline constexpr int scan_threads = 1024;

using cuda::pack;
using cuda::unpack;
using cuda::Vector;

template <class T, class Pointers>
struct Matrix {
    std::int64_t rows;
    Pointers row_ptr;
    const std::int32_t* col_idx;
    const T* entries;  ///< of the CSR arrays
    Slot* slots;       ///< slice_rows for each slice
    Slice* slices;
    /// Of a slice, raw or floats: vectors of each lane side by side, then what is left of the width, one value a lane;
    /// else the table, with the indices before it.
    unsigned char* values;
    int4* bases;
    unsigned char* codes;
};

/// Where the row of a lane begins in the CSR arrays, if it has one.
struct Row {
    std::int64_t begin = 0;
    std::int64_t length = 0;
};
template <class T, class Pointers>
__device__ __forceinline__ Row load_row(const Matrix<T, Pointers>& a, std::int64_t row)
{
    Row r;
    if (row < a.rows) {
        r.begin = fetch(a.row_ptr, row);
        r.length = fetch(a.row_ptr, row + 1) - r.begin;
    }
    return r;
}
__device__ __forceinline__ std::int64_t row_of(std::int64_t slice, const Slot& slot)
{
    constexpr int slices_per_sort = sort_rows / slice_rows;
    return slice / slices_per_sort * sort_rows + slot.row;
}
__device__ __forceinline__ int stored_length(const Slot& slot) { return slot.length == long_row ? 0 : slot.length; }

/// Of a lane, in the order of its slice: which entries its row has, and where they are.
struct LaneEntries {
    Row row;
    int own;  ///< length, or a bit for each entry
    bool masked;

    __device__ bool in(int k) const { return masked ? k < slice_rows && (own >> k & 1) != 0 : k < own; }
    /// Of an entry that is in.
    __device__ std::int64_t place(int k) const
    {
        return row.begin + (masked ? __popc(static_cast<unsigned>(own) & ((1u << k) - 1)) : k);
    }
};
template <class T, class Pointers>
__device__ __forceinline__ LaneEntries lane_entries(const Matrix<T, Pointers>& a, std::int64_t index,
                                                    const Slice& slice, int lane)
{
    const Slot slot = a.slots[index * slice_rows + lane];
    if (slice.code == SliceCode::masked) {
        return {load_row(a, index * slice_rows + lane), std::bit_cast<int>(slot), true};
    }
    return {load_row(a, row_of(index, slot)), stored_length(slot), false};
}

/// Gives each row of a block its slot: the longest of each window first where the order of the matrix would leave much
/// padding.
template <class T, class Pointers>
__global__ void __launch_bounds__(sort_rows) sort_kernel(const Matrix<T, Pointers> a, std::int64_t slices)
{
    __shared__ std::int32_t lengths[sort_rows];
    __shared__ int widths;
    __shared__ int entries;
    const int own = static_cast<int>(threadIdx.x);
    const std::int64_t first = std::int64_t{blockIdx.x} * sort_rows;
    if (own == 0) {
        widths = 0;
        entries = 0;
    }
    __syncthreads();
    const Row row = load_row(a, first + own);
    const bool is_long = row.length > longest_row;
    // Lanes behind the last row come after the empty rows, so that they keep their slots.
    const int length = first + own >= a.rows ? -1 : is_long ? 0 : static_cast<int>(row.length);
    lengths[own] = length;
    const unsigned counted = static_cast<unsigned>(max(length, 0));
    const unsigned width = __reduce_max_sync(whole_warp, counted);
    const unsigned sum = __reduce_add_sync(whole_warp, counted);
    if (own % slice_rows == 0) {
        atomicAdd(&widths, static_cast<int>(width));
        atomicAdd(&entries, static_cast<int>(sum));
    }
    __syncthreads();
    int rank = own;
    if (rows_are_sorted(entries, widths)) {
        const int window = own / sort_window * sort_window;
        rank = window;
        for (int i = window; i < window + sort_window; ++i) {
            rank += lengths[i] > length || (lengths[i] == length && i < own) ? 1 : 0;
        }
    }
    if (first / slice_rows + rank / slice_rows < slices) {
        a.slots[first + rank] = {static_cast<std::uint16_t>(own),
                                 is_long ? long_row : static_cast<std::uint16_t>(counted)};
    }
}

/// Counts the diagonals in which the rows of a slice, in their order, have entries, and finds which of them this lane's
/// row has; all lanes. More than slice_rows if there are more, or if columns do not ascend, so that entries would
/// change their order.
__device__ __forceinline__ int find_diagonals(const std::int32_t* columns, int length, int lane, unsigned& mask)
{
    constexpr std::int32_t none = std::numeric_limits<std::int32_t>::max();
    const auto diagonal = [&](int k) { return k < length ? __ldg(columns + k) - lane : none; };
    int k = 0;
    std::int32_t own = diagonal(0);
    mask = 0;
    for (int count = 0; count <= slice_rows; ++count) {
        const std::int32_t least = __reduce_min_sync(whole_warp, own);
        if (least == none) {
            return count;
        }
        bool descends = false;
        if (own == least) {
            mask |= 1u << count % slice_rows;
            own = diagonal(++k);
            descends = own <= least;
        }
        if (__any_sync(whole_warp, descends) != 0) {
            break;
        }
    }
    return slice_rows + 1;
}

/// Finds width and code of each slice, one warp a slice, and whether anything is left in CSR, which sets `left`.
template <class T, class Pointers>
__global__ void __launch_bounds__(threads)
    measure_kernel(const Matrix<T, Pointers> a, std::int64_t slices, unsigned* left)
{
    const std::int64_t slice = std::int64_t{blockIdx.x} * slices_per_block + threadIdx.x / slice_rows;
    const int lane = static_cast<int>(threadIdx.x) % slice_rows;
    if (slice >= slices) {
        return;
    }
    const Slot slot = a.slots[slice * slice_rows + lane];
    const Row row = load_row(a, row_of(slice, slot));
    const int length = stored_length(slot);
    int width = static_cast<int>(__reduce_max_sync(whole_warp, static_cast<unsigned>(length)));
    const int entries = static_cast<int>(__reduce_add_sync(whole_warp, static_cast<unsigned>(length)));
    const bool in_place = slot.row == slice * slice_rows % sort_rows + lane;
    const bool plain = __all_sync(whole_warp, in_place && slot.length == width) != 0;
    const bool any_long = __any_sync(whole_warp, slot.length == long_row) != 0;
    const int lanes = static_cast<int>(min(a.rows - slice * slice_rows, std::int64_t{slice_rows}));
    SliceCode code = SliceCode::csr;
    if (slice_is_stored(entries, width, lanes)) {
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
        if (__all_sync(whole_warp, in_place) != 0 && !any_long && !(plain && code == SliceCode::diagonal)) {
            unsigned mask = 0;
            const int diagonals = find_diagonals(columns, length, lane, mask);
            if (takes_masks(diagonals, width, code, sizeof(T))) {
                width = diagonals;
                code = SliceCode::masked;
                a.slots[slice * slice_rows + lane] = std::bit_cast<Slot>(mask);
            }
        }
    }
    if (lane == 0) {
        a.slices[slice] = sized_slice(width, code, plain && code != SliceCode::masked, sizeof(T));
        if (any_long || (width > 0 && code == SliceCode::csr)) {
            *left = 1;
        }
    }
}

/// What examine_kernel() finds for the values of a slice.
struct ValueSize {
    std::uint16_t blocks;
    SliceValues stored;
};

/// Turns sizes into positions, by one block: there is one slice for 32 rows, so this is little beside the other
/// kernels. Positions beyond 32 bits are cut off; `total` tells. With `values`, only the values are placed, anew.
static __global__ void __launch_bounds__(scan_threads)
    place_kernel(Slice* slices, const ValueSize* values, std::int64_t count, SellExtent* total)
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
                // One load: the compiler would make one of each of the short members.
                slice[i] = std::bit_cast<Slice>(reinterpret_cast<const uint4*>(slices)[own + i]);
                if (values != nullptr) {
                    slice[i].values = values[own + i].blocks;
                    slice[i].stored = values[own + i].stored;
                }
                sum.values += slice[i].values;
                sum.bases += slice[i].bases;
                sum.codes += slice[i].codes;
            }
        }
        SellExtent end{cuda::block_prefix(sum.values, value_sums), cuda::block_prefix(sum.bases, base_sums),
                       cuda::block_prefix(sum.codes, code_sums)};
        SellExtent at{before.values + end.values - sum.values, before.bases + end.bases - sum.bases,
                      before.codes + end.codes - sum.codes};
#pragma unroll
        for (int i = 0; i < per_thread; ++i) {
            if (own + i < count) {
                Slice placed = slice[i];
                placed.values = static_cast<std::uint32_t>(at.values);
                if (values == nullptr) {
                    placed.bases = static_cast<std::uint32_t>(at.bases);
                    placed.codes = static_cast<std::uint32_t>(at.codes);
                }
                reinterpret_cast<uint4*>(slices)[own + i] = std::bit_cast<uint4>(placed);
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

template <class T, class Pointers>
__device__ __forceinline__ unsigned char* slice_values(const Matrix<T, Pointers>& a, const Slice& slice)
{
    return a.values + std::int64_t{slice.values} * slice_block_bytes;
}
template <class T, class Pointers>
__device__ __forceinline__ unsigned char* slice_codes(const Matrix<T, Pointers>& a, const Slice& slice)
{
    return a.codes + std::int64_t{slice.codes} * slice_block_bytes;
}

/// Four values of each lane, from entry k on, into a slice that is stored as V.
template <class V, class T>
__device__ __forceinline__ void store_values(V* values, const T* value, int k, int width, int lane)
{
    constexpr int vector = Vector<V>::width;
    V stored[slice_group];
#pragma unroll
    for (int j = 0; j < slice_group; ++j) {
        stored[j] = static_cast<V>(value[j]);
    }
#pragma unroll
    for (int v = 0; v < slice_group; v += vector) {
        if (k + v + vector <= width) {
            reinterpret_cast<typename Vector<V>::type*>(values + (k + v) * slice_rows)[lane] = pack(stored + v);
        } else {
#pragma unroll
            for (int j = v; j < v + vector; ++j) {
                if (k + j < width) {
                    values[(k + j) * slice_rows + lane] = stored[j];
                }
            }
        }
    }
}

/// Copies values that are stored raw or as floats, and columns if `Structure`, from CSR into the slices, one warp a
/// slice.
template <bool Structure, class T, class Pointers>
__global__ void __launch_bounds__(threads) fill_kernel(const Matrix<T, Pointers> a, std::int64_t slices)
{
    const std::int64_t index = std::int64_t{blockIdx.x} * slices_per_block + threadIdx.x / slice_rows;
    const int lane = static_cast<int>(threadIdx.x) % slice_rows;
    if (index >= slices) {
        return;
    }
    const Slice slice = a.slices[index];
    const bool copied = slice.stored == SliceValues::raw || slice.stored == SliceValues::floats;
    if (slice.code == SliceCode::csr || (!Structure && !copied)) {
        return;
    }
    const LaneEntries entries = lane_entries(a, index, slice, lane);
    const bool diagonals = slice.code == SliceCode::diagonal || slice.code == SliceCode::masked;
    const auto first_row = static_cast<std::uint32_t>(diagonals ? index * slice_rows : 0);
    const int width = slice.width;
    unsigned char* const values = slice_values(a, slice);
    for (int k = 0; k < width; k += slice_group) {
        if (copied) {
            T value[slice_group];
#pragma unroll
            for (int j = 0; j < slice_group; ++j) {
                value[j] = entries.in(k + j) ? __ldg(a.entries + entries.place(k + j)) : T{0};
            }
            if (slice.stored == SliceValues::raw) {
                store_values(reinterpret_cast<T*>(values), value, k, width, lane);
            } else {
                store_values(reinterpret_cast<float*>(values), value, k, width, lane);
            }
        }
        if constexpr (Structure) {
            const int group = k / slice_group;
            std::int32_t base[slice_group] = {};
            std::uint32_t code[slice_group] = {};
#pragma unroll
            for (int j = 0; j < slice_group; ++j) {
                if (k + j < width) {
                    const bool in = entries.in(k + j);
                    const std::int32_t column = in ? __ldg(a.col_idx + entries.place(k + j)) : 0;
                    const std::int32_t shifted = diagonals ? column - lane : column;
                    base[j] =
                        slice.code == SliceCode::bytes4
                            ? 0
                            : __reduce_min_sync(whole_warp, in ? shifted : std::numeric_limits<std::int32_t>::max());
                    code[j] = in ? static_cast<std::uint32_t>(shifted - base[j]) : 0u;
                    // Modulo 2^32, as the product adds the row again.
                    base[j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(base[j]) - first_row);
                }
            }
            unsigned char* codes = slice_codes(a, slice) + group * slice_block_bytes * code_bytes(slice.code);
            if (slice.code == SliceCode::bytes1) {
                reinterpret_cast<std::uint32_t*>(codes)[lane] = code[0] | code[1] << 8 | code[2] << 16 | code[3] << 24;
            } else if (slice.code == SliceCode::bytes2) {
                if (k + slice_group / 2 < width) {
                    reinterpret_cast<uint2*>(codes)[lane] = {code[0] | code[1] << 16, code[2] | code[3] << 16};
                } else {
                    reinterpret_cast<std::uint32_t*>(codes)[lane] = code[0] | code[1] << 16;
                }
            } else if (slice.code == SliceCode::bytes4) {
                if (k + slice_group <= width) {
                    reinterpret_cast<uint4*>(codes)[lane] = {code[0], code[1], code[2], code[3]};
                } else {
#pragma unroll
                    for (int j = 0; j < slice_group; ++j) {
                        if (k + j < width) {
                            reinterpret_cast<std::uint32_t*>(codes)[j * slice_rows + lane] = code[j];
                        }
                    }
                }
            }
            if (slice.code != SliceCode::bytes4 && lane == 0) {
                a.bases[std::int64_t{slice.bases} + group] = {base[0], base[1], base[2], base[3]};
            }
        }
    }
}

/// Groups of bases that each slice needs room for: none where the one before has the same. One warp a slice.
static __global__ void __launch_bounds__(threads)
    compare_kernel(const Slice* slices, std::int64_t count, const int4* bases, std::uint32_t* groups_of)
{
    const std::int64_t index = std::int64_t{blockIdx.x} * slices_per_block + threadIdx.x / slice_rows;
    const int lane = static_cast<int>(threadIdx.x) % slice_rows;
    if (index >= count) {
        return;
    }
    const Slice slice = slices[index];
    const int groups = base_groups(slice.width, slice.code);
    bool same = false;
    if (index > 0) {
        const Slice before = slices[index - 1];
        same = base_groups(before.width, before.code) == groups;
        for (int g = lane; same && g < groups; g += slice_rows) {
            const int4 a = bases[std::int64_t{slice.bases} + g];
            const int4 b = bases[std::int64_t{before.bases} + g];
            same = a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w;
        }
    }
    same = __all_sync(whole_warp, same) != 0;
    if (lane == 0) {
        groups_of[index] = same ? 0u : static_cast<std::uint32_t>(groups);
    }
}

/// Moves the bases of the slices to `shared`, where those of a slice end at the latest before `positions` of the next.
/// One warp a slice.
static __global__ void __launch_bounds__(threads)
    move_bases_kernel(Slice* slices, std::int64_t count, const int4* bases, const std::uint32_t* positions,
                      int4* shared)
{
    const std::int64_t index = std::int64_t{blockIdx.x} * slices_per_block + threadIdx.x / slice_rows;
    const int lane = static_cast<int>(threadIdx.x) % slice_rows;
    if (index >= count) {
        return;
    }
    const Slice slice = slices[index];
    const auto groups = static_cast<std::uint32_t>(base_groups(slice.width, slice.code));
    const std::uint32_t end = positions[index + 1];
    for (std::uint32_t g = positions[index] + static_cast<std::uint32_t>(lane); g < end; g += slice_rows) {
        shared[g] = bases[slice.bases + g - positions[index]];
    }
    __syncwarp();
    if (lane == 0) {
        slices[index].bases = end - groups;
    }
}

}  // namespace rmsp::kernels::sell
