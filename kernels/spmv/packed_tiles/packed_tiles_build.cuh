#pragma once

#include <cstdint>
#include <limits>

#include <kernels/context.hpp>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_primitives.cuh>
#include <kernels/cuda_vector.cuh>
#include <kernels/spmv/common/pieces.cuh>
#include <kernels/spmv/common/stored_values.cuh>
#include <kernels/spmv/packed_tiles/layout.hpp>
#include <rmsp/partition.hpp>

/// The arrays of kernel "packed-tiles" and the kernels that make them from CSR.
namespace rmsp::kernels::packed {

inline constexpr int threads = packed_tuning.threads;
inline constexpr int warps = packed_tuning.warps();
inline constexpr int lane_entries = packed_tuning.lane_entries;
inline constexpr int tile_entries = packed_tuning.tile_entries();
inline constexpr unsigned whole_warp = 0xffffffffu;
static_assert(lane_entries == 8, "16 bytes of columns a lane, and rows before a lane in 8 bits");

/// 16 bits for each entry of a lane.
struct alignas(16) LanePairs {
    std::uint32_t pair[lane_entries / 2];

    /// Loads if `there`, as one predicated instruction: for a condition around several loads the compiler makes a
    /// branch, before which it waits for loads that are under way. What is used once is evicted first, so that x stays
    /// in the caches.
    __device__ __forceinline__ void load_if(bool there, const LanePairs* from)
    {
        asm volatile("{ .reg .pred p; setp.ne.s32 p, %5, 0; @p ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4]; }"
                     : "+r"(pair[0]), "+r"(pair[1]), "+r"(pair[2]), "+r"(pair[3])
                     : "l"(from), "r"(static_cast<int>(there)));
    }
    __device__ __forceinline__ std::uint32_t get(int k) const
    {
        return k % 2 == 0 ? pair[k / 2] & 0xffffu : pair[k / 2] >> 16;
    }
    __device__ __forceinline__ void set(int k, std::uint32_t code) { pair[k / 2] |= code << (16 * (k % 2)); }
};

/// What the columns of a lane have above their lower 16 bits.
template <int bits>
struct HighBits;
template <>
struct HighBits<4> {
    std::uint32_t codes;

    __device__ __forceinline__ void load_if(bool there, const HighBits* from)
    {
        asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p ld.global.cs.u32 %0, [%1]; }"
                     : "+r"(codes)
                     : "l"(from), "r"(static_cast<int>(there)));
    }
    __device__ __forceinline__ std::uint32_t get(int k) const { return codes >> (4 * k) & 0xfu; }
    __device__ __forceinline__ void set(int k, std::uint32_t code) { codes |= code << (4 * k); }
};
template <>
struct HighBits<16> {
    LanePairs codes;

    __device__ __forceinline__ void load_if(bool there, const HighBits* from) { codes.load_if(there, &from->codes); }
    __device__ __forceinline__ std::uint32_t get(int k) const { return codes.get(k); }
    __device__ __forceinline__ void set(int k, std::uint32_t code) { codes.set(k, code); }
};

/// Tile t has headers[t], ends[32 t + lane], low[32 t + lane], where it is wide high[32 t + lane], and 32 lane_entries
/// of values, in vectors of 16 bytes: the first of each lane, then the second of each.
template <class T, int high_bits>
struct Matrix {
    PackedHeader* headers;
    std::uint16_t* ends;
    LanePairs* low;
    HighBits<high_bits>* high;
    const void* values;
    T constant;              ///< all values, where none are stored
    const PackedCuts* cuts;  ///< of each block
    T* slots;                ///< of pieces of rows, one a warp: pieces.cuh
    int block_tiles;
};

__device__ __forceinline__ void load_if(bool there, const PackedHeader* from, PackedHeader& to)
{
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %3, 0; @p ld.global.nc.v2.s32 {%0, %1}, [%2]; }"
                 : "+r"(to.row), "+r"(to.column)
                 : "l"(from), "r"(static_cast<int>(there)));
}
__device__ __forceinline__ void load_if(bool there, const std::uint16_t* from, unsigned& to)
{
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p ld.global.nc.u16 %0, [%1]; }"
                 : "+r"(to)
                 : "l"(from), "r"(static_cast<int>(there)));
}

/// What a lane has to know of a tile before it gathers.
template <int high_bits>
struct Codes {
    PackedHeader header;
    unsigned ends;  ///< packed_ends()
    LanePairs low;
    HighBits<high_bits> high;  ///< of a wide tile

    /// Those of a tile `there`, if any, in place of another's. They are requested here, not waited for.
    template <class T>
    __device__ __forceinline__ void load(const Matrix<T, high_bits>& a, int tile, int lane, bool there, bool wide)
    {
        low.load_if(there, a.low + std::int64_t{tile} * 32 + lane);
        load_high(a, tile, lane, there && wide);
        packed::load_if(there, a.headers + tile, header);
        packed::load_if(there, a.ends + std::int64_t{tile} * 32 + lane, ends);
    }
    template <class T>
    __device__ __forceinline__ void load_high(const Matrix<T, high_bits>& a, int tile, int lane, bool there)
    {
        high.load_if(there, a.high + std::int64_t{tile} * 32 + lane);
    }

    __device__ __forceinline__ bool wide() const { return header.column == wide_columns; }
    __device__ __forceinline__ bool next_is_wide() const { return header.row < 0; }
    /// Bit k: entry k of the lane ends a row.
    __device__ __forceinline__ unsigned row_ends() const { return packed_row_ends(ends); }
    /// Of the first row that ends in this lane.
    __device__ __forceinline__ std::int32_t row() const
    {
        return without_complement(header.row) + packed_rows_before(ends);
    }
    __device__ __forceinline__ std::uint32_t wide_code(int k) const
    {
        return low.get(k) | high.get(k) << packed_low_bits;
    }
    __device__ __forceinline__ bool has_column(int k) const
    {
        return wide() ? wide_code(k) != packed_no_column(packed_low_bits + high_bits)
                      : low.get(k) != packed_no_column(packed_low_bits);
    }
};

/// x at this lane's columns; 0 of entries without one.
template <int high_bits, class T>
__device__ __forceinline__ void gather(const Codes<high_bits>& codes, const T* __restrict__ x,
                                       T (&gathered)[lane_entries])
{
    if (codes.wide()) {
#pragma unroll
        for (int k = 0; k < lane_entries; ++k) {
            const std::uint32_t code = codes.wide_code(k);
            gathered[k] = code != packed_no_column(packed_low_bits + high_bits) ? __ldg(x + code) : T{0};
        }
        return;
    }
    const T* from = x + without_complement(codes.header.column);
    asm("" : "+l"(from));  // or the compiler adds each code to the column first: four instructions instead of one
    if (codes.header.column >= 0) {
#pragma unroll
        for (int k = 0; k < lane_entries; ++k) {
            gathered[k] = __ldg(from + codes.low.get(k));
        }
    } else {
#pragma unroll
        for (int k = 0; k < lane_entries; ++k) {
            const std::uint32_t code = codes.low.get(k);
            gathered[k] = code != packed_no_column(packed_low_bits) ? __ldg(from + code) : T{0};
        }
    }
}

/// Entries of each row, one of an empty one; none behind the last.
template <class Offset>
__global__ void __launch_bounds__(threads)
    entries_kernel(const Offset* row_ptr, std::int64_t rows, std::int64_t* entries)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    if (row <= rows) {
        const std::int64_t length = row < rows ? row_ptr[row + 1] - row_ptr[row] : 0;
        entries[row] = length == 0 && row < rows ? 1 : length;
    }
}

/// The first entry of each row of a matrix without empty ones.
template <class Offset>
__global__ void __launch_bounds__(threads) widen_kernel(const Offset* row_ptr, std::int64_t n, std::int64_t* first)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    if (row < n) {
        first[row] = row_ptr[row];
    }
}

/// Of each row, and their number behind the last.
template <class Offset>
DeviceArray<std::int64_t> first_entries(const Offset* row_ptr, const RowStatistics& rows, const Context& context)
{
    const auto stream = static_cast<cudaStream_t>(context.stream);
    const std::int64_t n = rows.rows + 1;
    const auto blocks = static_cast<unsigned>((n + threads - 1) / threads);
    DeviceArray<std::int64_t> first(*context.memory, static_cast<std::size_t>(n));
    if (rows.empty_rows == 0) {
        widen_kernel<<<blocks, threads, 0, stream>>>(row_ptr, n, first.data());
        RMSP_CUDA_CHECK_LAUNCH("widen_kernel");
        return first;
    }
    entries_kernel<<<blocks, threads, 0, stream>>>(row_ptr, rows.rows, first.data());
    RMSP_CUDA_CHECK_LAUNCH("entries_kernel");
    cuda::exclusive_sum(first.data(), n, context);
    return first;
}

/// What is found while the structure is made.
template <class T>
struct Found {
    unsigned wide = 0;    ///< tiles
    int block_tiles = 0;  ///< of the largest block
    FoundValues<T> values;
};

inline constexpr int layout_threads = 1024;

/// The largest number that a thread of the block has, for all of them; `shared` is a word of shared memory.
static __device__ __forceinline__ int most_of_block(int own, int* shared)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        *shared = 0;
    }
    __syncthreads();
    own = __reduce_max_sync(whole_warp, own);
    if (threadIdx.x % 32 == 0) {
        atomicMax(shared, own);
    }
    __syncthreads();
    return *shared;
}

/// Where blocks begin, and what they share of rows, with empty slots for their pieces; one thread block, so that nobody
/// waits for its finds. A cut row makes a block wait for others, so even long ones stay whole as long as no block needs
/// another tile for that.
template <class T>
__global__ void __launch_bounds__(layout_threads)
    layout_kernel(const std::int64_t* first_entry, std::int64_t rows, PackedShape shape, PackedStart* starts,
                  PackedCuts* cuts, T* slots, int* block_tiles)
{
    __shared__ int shared;
    const auto own = static_cast<int>(threadIdx.x);
    const auto cut = [&](std::int64_t block) { return packed_cut(starts[block], first_entry); };
    const auto largest = [&] {
        std::int64_t tiles = 0;
        for (std::int64_t block = own; block < shape.blocks; block += layout_threads) {
            tiles = max(tiles, packed_tiles_of(starts[block + 1].entry - starts[block].entry));
        }
        return most_of_block(static_cast<int>(tiles), &shared);
    };
    int doublings = 0;
    for (std::int64_t block = own; block <= shape.blocks; block += layout_threads) {
        starts[block] = packed_start(block * shape.block_entries, rows, first_entry, packed_tuning.longest_whole_row);
        doublings = max(doublings, cut(block).doublings);
    }
    const int most = most_of_block(doublings, &shared);
    int tiles = largest();
    if (most > 0) {
        int possible = most;
        for (std::int64_t block = own; block < shape.blocks; block += layout_threads) {
            possible = packed_doublings_between(cut(block), cut(block + 1), tiles, possible);
        }
        const int n = most - most_of_block(most - possible, &shared);
        for (std::int64_t block = own; block <= shape.blocks; block += layout_threads) {
            starts[block].entry = cut(block).entry_after(n);
        }
        __syncthreads();
        tiles = largest();
    }
    for (std::int64_t block = own; block < shape.blocks; block += layout_threads) {
        cuts[block] = packed_cuts(starts, block, tiles, starts[block].entry);
        pieces::make_empty(slots + block * warps, warps);
    }
    if (own == 0) {
        *block_tiles = tiles;
    }
}

/// Headers, ends and columns, one warp a tile; `sources` gets the number of the first nonzero of each, `wide` how many
/// tiles are wide. \param tiles  of a block
template <int high_bits, class T, class Offset>
__global__ void __launch_bounds__(threads)
    structure_kernel(const Matrix<T, high_bits> a, const Offset* row_ptr, const std::int32_t* col_idx,
                     const std::int64_t* first_entry, std::int64_t rows, const PackedStart* starts, std::int64_t blocks,
                     const int* tiles, Offset* sources, unsigned* wide)
{
    const std::int64_t tile = std::int64_t{blockIdx.x} * warps + threadIdx.x / 32;
    const int lane = static_cast<int>(threadIdx.x % 32);
    const std::int64_t block_tiles = *tiles;
    const std::int64_t block = tile / block_tiles;
    if (block >= blocks) {
        return;
    }
    const PackedStart start = starts[block];
    const std::int64_t stop = starts[block + 1].entry;
    const std::int64_t begin = start.entry + tile % block_tiles * tile_entries;
    const std::int64_t own = begin + packed_tile_entry(lane, 0, true);
    // Behind the end of the block's entries come some that neither have a column nor end a row.
    const std::int64_t last_row = rows - 1;
    std::int64_t row = find_column(first_entry, min(start.row, last_row), last_row, min(own, stop - 1));
    const std::int64_t first_row = __shfl_sync(whole_warp, row, 0);
    if (lane == 0) {
        const std::int64_t into = min(begin, stop) - first_entry[row];
        sources[tile] = static_cast<Offset>(row_ptr[row] + min(into, std::int64_t{row_ptr[row + 1] - row_ptr[row]}));
    }
    unsigned ends = 0;
    std::int64_t ending = row;
#pragma unroll
    for (int k = 0; k < lane_entries; ++k) {
        if (own + k < stop && own + k + 1 == first_entry[ending + 1]) {
            ends |= 1u << k;
            ending += ending < last_row ? 1 : 0;
        }
    }
    a.ends[tile * 32 + lane] = packed_ends(ends, static_cast<int>(row - first_row));
    const bool row_ends = __any_sync(whole_warp, ends != 0);
    std::int32_t column[lane_entries];
    std::int32_t least = std::numeric_limits<std::int32_t>::max();
    std::int32_t most = 0;
    bool lacks = false;
#pragma unroll
    for (int k = 0; k < lane_entries; ++k) {
        const std::int64_t entry = begin + packed_tile_entry(lane, k, row_ends);
        const std::int64_t i = row_ptr[row] + (entry - first_entry[row]);
        column[k] = -1;
        if (entry < stop && i < row_ptr[row + 1]) {
            column[k] = col_idx[i];
            least = min(least, column[k]);
            most = max(most, column[k]);
        }
        lacks = lacks || column[k] < 0;
        row += (ends >> k & 1u) != 0 && row < last_row ? 1 : 0;
    }
    least = __reduce_min_sync(whole_warp, least);
    most = __reduce_max_sync(whole_warp, most);
    lacks = __any_sync(whole_warp, lacks);
    const bool is_wide = least <= most && !fits_16_bits(least, most);
    const std::int32_t base = is_wide || least > most ? 0 : least;
    if (lane == 0) {
        a.headers[tile] = {static_cast<std::int32_t>(first_row), is_wide ? wide_columns : complement_if(lacks, base)};
        if (is_wide) {
            atomicAdd(wide, 1u);
        }
    }
    const std::uint32_t none = packed_no_column(is_wide ? packed_low_bits + high_bits : packed_low_bits);
    LanePairs low{};
    HighBits<high_bits> high{};
#pragma unroll
    for (int k = 0; k < lane_entries; ++k) {
        const std::uint32_t code = column[k] < 0 ? none : static_cast<std::uint32_t>(column[k] - base);
        low.set(k, code & packed_no_column(packed_low_bits));
        high.set(k, code >> packed_low_bits);
    }
    a.low[tile * 32 + lane] = low;
    if (is_wide) {
        a.high[tile * 32 + lane] = high;
    }
}

/// Says in each header whether the next tile is wide.
/// \param tiles  of a block
static __global__ void __launch_bounds__(threads)
    wide_next_kernel(PackedHeader* headers, std::int64_t blocks, const int* tiles)
{
    const std::int64_t tile = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    if (tile + 1 < blocks * *tiles) {
        headers[tile].row = complement_if(headers[tile + 1].column == wide_columns, headers[tile].row);
    }
}

/// Values, one warp a tile. The structure is there.
template <class V, int high_bits, class T, class Offset>
__global__ void __launch_bounds__(threads)
    values_kernel(const Matrix<T, high_bits> a, const T* values, const Offset* sources, std::int64_t tiles, V* stored)
{
    const std::int64_t tile = std::int64_t{blockIdx.x} * warps + threadIdx.x / 32;
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (tile >= tiles) {
        return;
    }
    Codes<high_bits> codes{};
    codes.load(a, static_cast<int>(tile), lane, true, false);
    codes.load_high(a, static_cast<int>(tile), lane, codes.wide());
    const bool row_ends = __any_sync(whole_warp, codes.row_ends() != 0);
    int own = 0;
#pragma unroll
    for (int k = 0; k < lane_entries; ++k) {
        own += codes.has_column(k) ? 1 : 0;
    }
    int before = own;
    for (int offset = 1; offset < 32; offset *= 2) {
        const int left = __shfl_up_sync(whole_warp, before, offset);
        before += lane >= offset ? left : 0;
    }
    before -= own;
    LaneValues<V, lane_entries> own_values;
#pragma unroll
    for (int k = 0; k < lane_entries; ++k) {
        own_values.stored[k] = V{0};
        if (codes.has_column(k)) {
            // Entries of a row come first, those without a column behind it.
            const int source = row_ends ? before++ : packed_tile_entry(lane, k, false);
            own_values.stored[k] = static_cast<V>(values[sources[tile] + source]);
        }
    }
    own_values.store(stored, tile, lane);
}

}  // namespace rmsp::kernels::packed
