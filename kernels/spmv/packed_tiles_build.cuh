#pragma once

#include <cstdint>
#include <limits>

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/device/device_scan.cuh>
#include <kernels/context.hpp>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_vector.cuh>
#include <kernels/spmv/packed_tiles.hpp>
#include <kernels/spmv/stored_values.cuh>

/// The arrays of kernel "packed-tiles" and the kernels that make them from CSR.
namespace rmsp::kernels::packed {

inline constexpr int threads = packed_tuning.threads;
inline constexpr int warps = packed_tuning.warps();
inline constexpr int lane_entries = packed_tuning.lane_entries;
inline constexpr int tile_entries = packed_tuning.tile_entries();
inline constexpr int beside = 4;  // columns of a sector of doubles
/// Of the nonzeros whose column lies beside that of the next one, in matrices whose lanes gather for each other.
struct SpreadShares {
    double least = 1.0 / 8;
    double most = 1.0 / 3;
};
inline constexpr SpreadShares spread_shares{};
inline constexpr unsigned whole_warp = 0xffffffffu;
static_assert(lane_entries == 8, "16 bytes of columns a lane, and rows before a lane in 8 bits");

using cuda::unpack;

/// Tile t has headers[t], ends[32 t + lane], and 32 lane_entries of values and columns, in vectors of 16 bytes: the first of each
/// lane, then the second of each. Where lanes gather for each other, columns are transposed, and so are the values of tiles in which no row
/// ends.
template <class T>
struct Matrix {
    PackedHeader* headers;
    std::uint16_t* ends;
    std::int32_t* columns;
    const void* values;
    T constant;              ///< all values, where none are stored
    const PackedCuts* cuts;  ///< of each block
    T* slots;                ///< of pieces of rows, one a warp: pieces.cuh
    int block_tiles;
    bool spread;  ///< lanes gather for each other, so that eight neighbours gather entries that follow each other
    bool wide;    ///< most tiles have 32-bit columns: their second half is loaded before the header says so
};

/// Entry k of lane i for entry i of lane k, in each group of 8 lanes.
template <class V>
__device__ __forceinline__ void transpose(V (&v)[lane_entries], int lane)
{
#pragma unroll
    for (int bit = 1; bit < lane_entries; bit *= 2) {
        const bool upper = (lane & bit) != 0;
#pragma unroll
        for (int k = 0; k < lane_entries; ++k) {
            if ((k & bit) == 0) {
                const V other = __shfl_xor_sync(whole_warp, upper ? v[k] : v[k | bit], bit);
                v[k] = upper ? other : v[k];
                v[k | bit] = upper ? v[k | bit] : other;
            }
        }
    }
}

/// What a lane has to know of a tile before it gathers.
struct Codes {
    PackedHeader header;
    unsigned ends;
    int4 columns[2];
};

template <class T>
__device__ __forceinline__ Codes load_codes(const Matrix<T>& a, std::int64_t tile, int lane)
{
    const auto* vectors = reinterpret_cast<const int4*>(a.columns + tile * tile_entries) + lane;
    Codes codes;
    // Each is used once: evicted first, so that x stays in the caches.
    codes.columns[0] = __ldcs(vectors);
    if (a.wide) {
        codes.columns[1] = __ldcs(vectors + 32);
    }
    codes.header = a.headers[tile];
    codes.ends = __ldg(a.ends + tile * 32 + lane);
    if (!a.wide && codes.header.first_column == wide_columns) {
        codes.columns[1] = __ldcs(vectors + 32);
    }
    return codes;
}

/// Columns that this lane gathers; -1: of an entry without one.
__device__ __forceinline__ void unpack(const Codes& codes, std::int32_t (&column)[lane_entries])
{
    unpack(codes.columns[0], column);
    const std::int32_t first = codes.header.first_column;
    if (first == wide_columns) {
        unpack(codes.columns[1], column + 4);
    } else {
#pragma unroll
        for (int pair = 3; pair >= 0; --pair) {
            const auto both = static_cast<std::uint32_t>(column[pair]);
            const std::uint32_t code[2] = {both & 0xffffu, both >> 16};
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                column[2 * pair + k] =
                    code[k] == no_column16 ? no_column32 : first + static_cast<std::int32_t>(code[k]);
            }
        }
    }
}

/// Entries of a row; none behind the last.
template <class Offset>
struct RowEntries {
    const Offset* row_ptr;
    std::int64_t rows;
    __host__ __device__ std::int64_t operator()(std::int64_t row) const
    {
        const std::int64_t length = row < rows ? row_ptr[row + 1] - row_ptr[row] : 0;
        return length == 0 && row < rows ? 1 : length;
    }
};

/// Of each row, and their number behind the last.
template <class Offset>
DeviceArray<std::int64_t> first_entries(const Offset* row_ptr, std::int64_t rows, const Context& context)
{
    const auto stream = static_cast<cudaStream_t>(context.stream);
    DeviceArray<std::int64_t> first(*context.memory, static_cast<std::size_t>(rows) + 1);
    const auto lengths =
        thrust::make_transform_iterator(thrust::counting_iterator<std::int64_t>(0), RowEntries<Offset>{row_ptr, rows});
    std::size_t bytes = 0;
    RMSP_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(nullptr, bytes, lengths, first.data(), rows + 1, stream));
    const DeviceArray<std::byte> workspace(*context.memory, bytes);
    RMSP_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(workspace.data(), bytes, lengths, first.data(), rows + 1, stream));
    return first;
}

static __global__ void starts_kernel(const std::int64_t* first_entry, std::int64_t rows, PackedShape shape,
                                     std::int64_t whole_row, PackedStart* starts)
{
    const std::int64_t block = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    if (block <= shape.blocks) {
        starts[block] = packed_start(block * shape.block_entries, rows, first_entry, whole_row);
    }
}

/// Counts the nonzeros whose column lies beside that of the next one.
static __global__ void __launch_bounds__(threads)
    neighbours_kernel(const std::int32_t* columns, std::int64_t nnz, unsigned long long* count)
{
    unsigned own = 0;
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i + 1 < nnz;
         i += std::int64_t{gridDim.x} * threads) {
        own += columns[i] / beside == columns[i + 1] / beside ? 1 : 0;
    }
    own = __reduce_add_sync(whole_warp, own);
    if (threadIdx.x % 32 == 0) {
        atomicAdd(count, static_cast<unsigned long long>(own));
    }
}

/// Headers, ends and columns, one warp a tile; `sources` gets the number of the first nonzero of each, `wide` how many tiles have
/// 32-bit columns.
template <class T, class Offset>
__global__ void __launch_bounds__(threads)
    structure_kernel(const Matrix<T> a, const Offset* row_ptr, const std::int32_t* col_idx,
                     const std::int64_t* first_entry, std::int64_t rows, const PackedStart* starts, std::int64_t tiles,
                     Offset* sources, unsigned* wide)
{
    const std::int64_t tile = std::int64_t{blockIdx.x} * warps + threadIdx.x / 32;
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (tile >= tiles) {
        return;
    }
    const std::int64_t block = tile / a.block_tiles;
    const std::int64_t stop = starts[block + 1].entry;
    const std::int64_t begin = starts[block].entry + tile % a.block_tiles * tile_entries;
    const std::int64_t own = begin + lane * lane_entries;
    // Behind the end of the block's entries come some that neither have a column nor end a row.
    const std::int64_t last_row = rows - 1;
    std::int64_t row = find_column(first_entry, 0, last_row, min(own, stop - 1));
    const std::int64_t first_row = __shfl_sync(whole_warp, row, 0);
    if (lane == 0) {
        const std::int64_t into = min(begin, stop) - first_entry[row];
        sources[tile] = static_cast<Offset>(row_ptr[row] + min(into, std::int64_t{row_ptr[row + 1] - row_ptr[row]}));
    }
    const auto rows_before = static_cast<int>(row - first_row);
    unsigned ends = 0;
    std::int32_t column[lane_entries];
    std::int32_t least = std::numeric_limits<std::int32_t>::max();
    std::int32_t most = 0;
#pragma unroll
    for (int k = 0; k < lane_entries; ++k) {
        const std::int64_t entry = own + k;
        column[k] = no_column32;
        if (entry < stop) {
            const std::int64_t i = row_ptr[row] + (entry - first_entry[row]);
            if (i < row_ptr[row + 1]) {
                column[k] = col_idx[i];
                least = min(least, column[k]);
                most = max(most, column[k]);
            }
            if (entry + 1 == first_entry[row + 1]) {
                ends |= 1u << k;
                row += row < last_row ? 1 : 0;
            }
        }
    }
    least = __reduce_min_sync(whole_warp, least);
    most = __reduce_max_sync(whole_warp, most);
    const bool narrow = least > most || fits_16_bits(least, most);
    const std::int32_t base = least > most ? 0 : least;
    a.ends[tile * 32 + lane] = packed_ends(ends, rows_before);
    if (lane == 0) {
        a.headers[tile] = {static_cast<std::int32_t>(first_row), narrow ? base : wide_columns};
        if (!narrow) {
            atomicAdd(wide, 1u);
        }
    }
    if (a.spread) {
        transpose(column, lane);
    }
    auto* vectors = reinterpret_cast<int4*>(a.columns + tile * tile_entries) + lane;
    if (narrow) {
        std::uint32_t code[lane_entries];
#pragma unroll
        for (int k = 0; k < lane_entries; ++k) {
            code[k] = column[k] == no_column32 ? no_column16 : static_cast<std::uint32_t>(column[k] - base);
        }
        const auto pair = [&](int k) { return static_cast<std::int32_t>(code[k] | code[k + 1] << 16); };
        *vectors = {pair(0), pair(2), pair(4), pair(6)};
    } else {
#pragma unroll
        for (int v = 0; v < lane_entries; v += 4) {
            vectors[8 * v] = {column[v], column[v + 1], column[v + 2], column[v + 3]};
        }
    }
}

/// Values, one warp a tile. The structure is there.
template <class V, class T, class Offset>
__global__ void __launch_bounds__(threads)
    values_kernel(const Matrix<T> a, const T* values, const Offset* sources, std::int64_t tiles, V* stored)
{
    const std::int64_t tile = std::int64_t{blockIdx.x} * warps + threadIdx.x / 32;
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (tile >= tiles) {
        return;
    }
    std::int32_t column[lane_entries];
    const Codes codes = load_codes(a, tile, lane);
    unpack(codes, column);
    if (a.spread) {
        transpose(column, lane);
    }
    int own = 0;
#pragma unroll
    for (int k = 0; k < lane_entries; ++k) {
        own += column[k] != no_column32 ? 1 : 0;
    }
    int before = own;
    for (int offset = 1; offset < 32; offset *= 2) {
        const int left = __shfl_up_sync(whole_warp, before, offset);
        before += lane >= offset ? left : 0;
    }
    const T* from = values + sources[tile] + (before - own);
    LaneValues<V, lane_entries> own_values;
#pragma unroll
    for (int k = 0; k < lane_entries; ++k) {
        own_values.stored[k] = V{0};
        if (column[k] != no_column32) {
            own_values.stored[k] = static_cast<V>(*from++);
        }
    }
    if (a.spread && __all_sync(whole_warp, (codes.ends & ((1u << lane_entries) - 1)) == 0)) {
        transpose(own_values.stored, lane);
    }
    own_values.store(stored, tile, lane);
}

}  // namespace rmsp::kernels::packed
