#pragma once

#include <cstdint>
#include <type_traits>

#include <kernels/cuda_vector.cuh>
#include <kernels/spmv/sell_blocks/layout.hpp>
#include <kernels/spmv/sell_blocks/sell_blocks_build.cuh>

/// The product of kernel "sell-blocks": one warp or several a slice.
namespace rmsp::kernels::sell_blocks {

/// The codes of as many blocks as 16 bytes hold values.
template <class T>
struct CodeVector;
template <>
struct CodeVector<double> {
    using type = uint2;
};
template <>
struct CodeVector<float> {
    using type = uint4;
};
__device__ __forceinline__ void unpack(const uint2& v, std::uint32_t* p)
{
    p[0] = v.x;
    p[1] = v.y;
}
__device__ __forceinline__ void unpack(const uint4& v, std::uint32_t* p)
{
    p[0] = v.x;
    p[1] = v.y;
    p[2] = v.z;
    p[3] = v.w;
}

/// The values of a lane's line of as many blocks: 16 bytes, or 8 if doubles are stored as floats.
template <class V, class T>
using ValueVector = std::conditional_t<sizeof(V) == sizeof(T), typename cuda::Vector<T>::type, float2>;
__device__ __forceinline__ void unpack(const double2& v, double* p) { cuda::unpack(v, p); }
__device__ __forceinline__ void unpack(const float4& v, float* p) { cuda::unpack(v, p); }
__device__ __forceinline__ void unpack(const float2& v, float* p)
{
    p[0] = v.x;
    p[1] = v.y;
}

/// Sums that a lane keeps: of the rows of its column, or of its row.
template <int R, int C>
inline constexpr int lane_sums = BlockShape{R, C}.by_column() ? R : 1;

/// Entry `place` of a lane's line of a block, as its bit in the code. If `Full`, the block has all its entries or none.
template <int R, int C, bool Full>
__device__ __forceinline__ constexpr std::uint32_t entry_bit(int line, int place)
{
    return Full ? 1u : BlockShape{R, C}.by_column() ? 1u << (place * C + line) : 1u << (line * C + place);
}

/// x at a lane's column of a block, or at all columns for a lane that has a row; 0 where there is no entry.
template <int R, int C, bool Full, class T>
__device__ __forceinline__ void gather(std::uint32_t code, int line, const T* __restrict__ x, T* gathered)
{
    constexpr BlockShape shape{R, C};
    const T* const from = x + static_cast<std::int64_t>(code >> (R * C)) * C;
    if constexpr (shape.by_column()) {
        std::uint32_t column = 0;
#pragma unroll
        for (int r = 0; r < R; ++r) {
            column |= entry_bit<R, C, Full>(line, r);
        }
        gathered[0] = (code & column) != 0 ? __ldg(from + line) : T{0};
    } else {
#pragma unroll
        for (int c = 0; c < C; ++c) {
            gathered[c] = (code & entry_bit<R, C, Full>(line, c)) != 0 ? __ldg(from + c) : T{0};
        }
    }
}

/// Adds a lane's line of a block, times its x. What is not an entry is never multiplied: x may hold what is not finite.
template <int R, int C, bool Full, class V, class T>
__device__ __forceinline__ void add_line(T (&sums)[lane_sums<R, C>], const V* value, const T* gathered,
                                         std::uint32_t code, int line)
{
    constexpr BlockShape shape{R, C};
#pragma unroll
    for (int i = 0; i < shape.lane_values(); ++i) {
        if (Full || (code & entry_bit<R, C, Full>(line, i)) != 0) {
            T& sum = sums[shape.by_column() ? i : 0];
            sum = fma(static_cast<T>(value[i]), gathered[shape.by_column() ? 0 : i], sum);
        }
    }
}

/// Adds to `sums` the groups that begin at blocks k, k + step, ...: `Groups` of them. If `Rest`, the slice ends inside
/// the last one.
template <int R, int C, bool Full, int Groups, bool Rest, class V, class T>
__device__ __forceinline__ void add_groups(T (&sums)[lane_sums<R, C>], const V* values, const std::uint32_t* codes,
                                           int width, int k, int step, int own, int lane, const T* __restrict__ x)
{
    constexpr BlockShape shape{R, C};
    constexpr int nodes = slice_nodes(shape);
    constexpr int lanes = slice_lanes(shape);
    constexpr int group = block_group<T>;
    constexpr int each = shape.lane_values();
    constexpr int gathers = shape.by_column() ? 1 : C;
    using Values = ValueVector<V, T>;
    using Codes = typename CodeVector<T>::type;
    std::uint32_t code[Groups][group];
    V value[Groups][group * each];
    // Each is used once: evicted first, so that x stays in the caches.
#pragma unroll
    for (int g = 0; g < Groups - (Rest ? 1 : 0); ++g) {
        unpack(__ldcs(reinterpret_cast<const Codes*>(codes + (k + g * step) * nodes) + own), code[g]);
#pragma unroll
        for (int i = 0; i < each; ++i) {
            unpack(__ldcs(reinterpret_cast<const Values*>(values + (k + g * step) * (lanes * each)) + i * lanes + lane),
                   value[g] + i * group);
        }
    }
    if constexpr (Rest) {
        const int first = k + (Groups - 1) * step;
#pragma unroll
        for (int b = 0; b < group; ++b) {
            const bool in = b == 0 || (b < group - 1 && first + b < width);
            code[Groups - 1][b] = in ? __ldcs(codes + (first + b) * nodes + own) : 0;
#pragma unroll
            for (int i = 0; i < each; ++i) {
                value[Groups - 1][b * each + i] = in ? __ldcs(values + ((first + b) * each + i) * lanes + lane) : V{0};
            }
        }
    }
    const int line = lane % shape.lanes();
#pragma unroll
    for (int g = 0; g < Groups; ++g) {
        const int blocks = Rest && g == Groups - 1 ? group - 1 : group;
        T gathered[group * gathers];
#pragma unroll
        for (int b = 0; b < blocks; ++b) {
            gather<R, C, Full>(code[g][b], line, x, gathered + b * gathers);
        }
#pragma unroll
        for (int b = 0; b < blocks; ++b) {
            add_line<R, C, Full>(sums, value[g] + b * each, gathered + b * gathers, code[g][b], line);
        }
    }
}

/// This part's and lane's share of the sums of a node of a slice that is stored. Unless `Rest`, slices are whole groups
/// wide.
template <int R, int C, bool Full, bool Rest, class V, class T>
__device__ __forceinline__ void add_blocks(T (&sums)[lane_sums<R, C>], const V* values, const std::uint32_t* codes,
                                           int width, int part, int parts, int own, int lane, const T* __restrict__ x)
{
    constexpr int few = sell_blocks_tuning.groups_in_flight;
    static_assert(few == 3, "up to three groups are left, the last of three not whole");
    constexpr int in_flight = few * static_cast<int>(sizeof(T) / sizeof(V));  // of the same bytes
    constexpr int group = block_group<T>;
    const int step = parts * group;
    int k = part * group;
    const int whole = Rest ? width - group + 1 : width;  // a whole group begins before
    for (; k + (in_flight - 1) * step < whole; k += in_flight * step) {
        add_groups<R, C, Full, in_flight, false>(sums, values, codes, width, k, step, own, lane, x);
    }
    if (in_flight > few && k + (few - 1) * step < whole) {
        add_groups<R, C, Full, few, false>(sums, values, codes, width, k, step, own, lane, x);
        k += few * step;
    }
    if (Rest && k + 2 * step < width) {
        add_groups<R, C, Full, 3, Rest>(sums, values, codes, width, k, step, own, lane, x);
    } else if (k + step < whole) {
        add_groups<R, C, Full, 2, false>(sums, values, codes, width, k, step, own, lane, x);
    } else if (Rest && k + step < width) {
        add_groups<R, C, Full, 2, Rest>(sums, values, codes, width, k, step, own, lane, x);
    } else if (k < whole) {
        add_groups<R, C, Full, 1, false>(sums, values, codes, width, k, step, own, lane, x);
    } else if (Rest && k < width) {
        add_groups<R, C, Full, 1, Rest>(sums, values, codes, width, k, step, own, lane, x);
    }
}

/// The sum of the row of a lane, which all lanes of its node have shares of if they have columns.
template <int R, int C, class T>
__device__ __forceinline__ T row_sum(const T (&sums)[lane_sums<R, C>], int lane)
{
    T own = sums[0];
    if constexpr (BlockShape{R, C}.by_column()) {
        static_assert(R == C, "a node has a lane for each of its rows");
        const int first = lane / C * C;
#pragma unroll
        for (int r = 0; r < R; ++r) {
            T sum = 0;
#pragma unroll
            for (int c = 0; c < C; ++c) {
                sum += __shfl_sync(0xffffffffu, sums[r], first + c);
            }
            own = lane - first == r ? sum : own;
        }
    }
    return own;
}

/// What the product reads.
template <class T>
struct Slices {
    std::int64_t rows;
    const std::int32_t* row_ptr32;  ///< row pointers, of either width
    const std::int64_t* row_ptr64;
    const std::int32_t* col_idx;
    const T* entries;
    std::int64_t shift;
    std::int64_t slices;
    const std::uint32_t* node_of;
    const BlockSlice* info;
    const void* values;
    const std::uint32_t* codes;
};

/// By one load: the compiler would make one for each member.
__device__ __forceinline__ BlockSlice load_slice(const BlockSlice* info)
{
    const uint2 raw = __ldg(reinterpret_cast<const uint2*>(info));
    return {raw.x, raw.y};
}

/// `parts` warps a slice, whose values are stored as V. If there are `Many`, slices end inside groups, and from thread
/// block `last` on all warps of a block share one.
template <int R, int C, bool Many, class V, class T>
__global__ void __launch_bounds__(threads, sell_blocks_tuning.blocks_per_multiprocessor)
    sell_blocks_kernel(const Slices<T> a, int parts, unsigned last, T alpha, const T* __restrict__ x, T beta,
                       T* __restrict__ y)
{
    constexpr BlockShape shape{R, C};
    constexpr int nodes = slice_nodes(shape);
    constexpr int lanes = slice_lanes(shape);
    __shared__ T part_sums[threads];

    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = min(static_cast<int>(threadIdx.x) % 32, lanes - 1);
    const bool has_row = static_cast<int>(threadIdx.x) % 32 < lanes;
    const int own = lane / shape.lanes();  // node
    const int slices_per_block = static_cast<int>(blockDim.x) / (32 * parts);
    std::int64_t index = std::int64_t{blockIdx.x} * slices_per_block + warp / parts;
    if (Many && blockIdx.x >= last) {
        index = std::int64_t{last} * slices_per_block + (blockIdx.x - last);
        parts *= slices_per_block;
    }
    const int part = warp % parts;
    std::int64_t row = -1;
    T sum = 0;
    if (index < a.slices) {
        const BlockSlice slice = load_slice(a.info + index);
        row = std::int64_t{a.node_of[index * nodes + own]} * R + lane % R - a.shift;
        if (slice.blocks() == 0) {
            if (has_row && row >= 0 && row < a.rows) {
                const bool wide = a.row_ptr64 != nullptr;
                const std::int64_t begin = wide ? a.row_ptr64[row] : a.row_ptr32[row];
                const std::int64_t length = (wide ? a.row_ptr64[row + 1] : a.row_ptr32[row + 1]) - begin;
#pragma unroll 4
                for (std::int64_t k = part; k < length; k += parts) {
                    sum = fma(__ldg(a.entries + begin + k), __ldg(x + __ldg(a.col_idx + begin + k)), sum);
                }
            }
        } else {
            const V* const values =
                static_cast<const V*>(a.values) + std::int64_t{slice.first} * (lanes * shape.lane_values());
            const std::uint32_t* const codes = a.codes + std::int64_t{slice.first} * nodes;
            T sums[lane_sums<R, C>] = {};
            if (slice.full()) {
                add_blocks<R, C, true, Many>(sums, values, codes, slice.blocks(), part, parts, own, lane, x);
            } else {
                add_blocks<R, C, false, Many>(sums, values, codes, slice.blocks(), part, parts, own, lane, x);
            }
            sum = row_sum<R, C>(sums, lane);
        }
    }
    if (parts > 1) {
        part_sums[threadIdx.x] = sum;
        __syncthreads();
        if (part != 0) {
            return;
        }
        for (int p = 1; p < parts; ++p) {
            sum += part_sums[threadIdx.x + p * 32];
        }
    }
    if (has_row && row >= 0 && row < a.rows) {
        y[row] = beta == T{0} ? alpha * sum : alpha * sum + beta * y[row];
    }
}

}  // namespace rmsp::kernels::sell_blocks
