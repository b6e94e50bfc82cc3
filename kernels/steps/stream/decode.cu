#include <algorithm>
#include <cstdint>

#include <kernels/cuda_check.cuh>
#include <kernels/steps/stream/stream.hpp>

namespace rmsp::kernels {
namespace cuda::decoding {
namespace {

constexpr int threads = 256;
constexpr int blocks_per_multiprocessor = 8;
constexpr int warp = 32;
constexpr unsigned all_lanes = 0xffffffffu;

/// A packet as the kernel sees it, and where it is decoded to.
template <class T>
struct Decoding {
    PacketLayout layout;
    const std::byte* packet;
    std::int32_t* row_ptr;
    std::int32_t* col_idx;
    T* values;
    // Tasks of one warp each, in this order.
    std::int64_t row_ptr_tasks;
    std::int64_t column_tasks;
    std::int64_t value_tasks;
};

template <class Entry>
__device__ __forceinline__ const Entry* at(const std::byte* packet, std::int64_t offset)
{
    return reinterpret_cast<const Entry*>(packet + offset);
}

/// One warp hands each integer of a block to put(i, integer).
template <class Put>
__device__ __forceinline__ void unpack_block(const std::byte* packet, std::int64_t blocks, const std::uint32_t* words,
                                             std::int64_t index, std::int64_t n, const Put& put)
{
    const auto raw = __ldg(at<uint4>(packet, blocks) + index);
    const PackedBlock block{raw.x, raw.y, raw.z, raw.w};
    const std::int64_t begin = index * packed_block;
    const int count = static_cast<int>(min(std::int64_t{packed_block}, n - begin));
#pragma unroll
    for (int k = 0; k < packed_block / warp; ++k) {
        const int i = k * warp + static_cast<int>(threadIdx.x % warp);
        if (i < count) {
            put(begin + i, unpack(block, words, static_cast<std::uint32_t>(i)));
        }
    }
}

/// One warp writes the columns of 32 rows, 32 neighbouring entries at a time. Each lane knows one row; each entry looks
/// up its own.
template <class T>
__device__ __forceinline__ void write_patterns(const Decoding<T>& d, const std::uint32_t* words, std::int64_t task)
{
    const auto* const row_blocks = at<PackedBlock>(d.packet, d.layout.row_ptr_blocks);
    const std::int64_t first_row = task * pattern_rows;
    const std::int64_t end_row = min(first_row + pattern_rows, d.layout.rows);
    const std::int64_t row = min(first_row + threadIdx.x % warp, end_row - 1);
    const std::uint32_t end = unpack(row_blocks, words, end_row);
    // A lane without a row begins where the last one ends, so that no entry takes it for its own.
    const std::uint32_t row_begin = first_row + threadIdx.x % warp < end_row ? unpack(row_blocks, words, row) : end;
    const std::uint32_t pattern = unpack(at<PackedBlock>(d.packet, d.layout.column_blocks), words, row);
    const std::uint32_t list = at<std::uint32_t>(d.packet, d.layout.pattern_start)[pattern];
    const auto* const offsets = at<std::uint32_t>(d.packet, d.layout.pattern_offsets);
    const auto global_row = static_cast<std::uint32_t>(d.layout.first_row + first_row);
    const std::uint32_t begin = __shfl_sync(all_lanes, row_begin, 0);
    for (std::uint32_t chunk = begin; chunk < end; chunk += warp) {
        const std::uint32_t i = chunk + threadIdx.x % warp;
        // The last row that begins at or before the entry.
        int own = 0;
#pragma unroll
        for (int step = warp / 2; step > 0; step /= 2) {
            own += __shfl_sync(all_lanes, row_begin, own + step) <= i ? step : 0;
        }
        const std::uint32_t own_begin = __shfl_sync(all_lanes, row_begin, own);
        const std::uint32_t own_list = __shfl_sync(all_lanes, list, own);
        if (i < end) {
            d.col_idx[i] = static_cast<std::int32_t>(global_row + static_cast<std::uint32_t>(own) +
                                                     __ldg(offsets + own_list + (i - own_begin)));
        }
    }
}

template <class T>
__device__ __forceinline__ void write_values(const Decoding<T>& d, const std::uint32_t* words, std::int64_t task)
{
    const auto put_as = [&](const auto& value_of) {
        unpack_block(d.packet, d.layout.value_blocks, words, task, d.layout.nnz,
                     [&](std::int64_t i, std::uint32_t code) { d.values[i] = value_of(code); });
    };
    if (d.layout.values == ValueCode::dictionary) {
        const T* const table = at<T>(d.packet, d.layout.dictionary);
        put_as([&](std::uint32_t code) { return __ldg(table + code); });
    } else if (d.layout.values == ValueCode::integers) {
        put_as([](std::uint32_t code) { return static_cast<T>(static_cast<std::int32_t>(code)); });
    } else {
        put_as([](std::uint32_t code) { return static_cast<T>(__uint_as_float(code)); });
    }
}

template <class T>
__global__ void __launch_bounds__(threads, blocks_per_multiprocessor)
    decode_kernel(const __grid_constant__ Decoding<T> d)
{
    const auto* const words = at<std::uint32_t>(d.packet, d.layout.words);
    const std::int64_t all = d.row_ptr_tasks + d.column_tasks + d.value_tasks;
    for (std::int64_t task = std::int64_t{blockIdx.x} * (threads / warp) + threadIdx.x / warp; task < all;
         task += std::int64_t{gridDim.x} * (threads / warp)) {
        if (task < d.row_ptr_tasks) {
            unpack_block(d.packet, d.layout.row_ptr_blocks, words, task, d.layout.rows + 1,
                         [&](std::int64_t i, std::uint32_t v) { d.row_ptr[i] = static_cast<std::int32_t>(v); });
        } else if (task < d.row_ptr_tasks + d.column_tasks) {
            const std::int64_t index = task - d.row_ptr_tasks;
            if (d.layout.columns == ColumnCode::patterns) {
                write_patterns(d, words, index);
            } else {
                unpack_block(d.packet, d.layout.column_blocks, words, index, d.layout.nnz,
                             [&](std::int64_t i, std::uint32_t v) { d.col_idx[i] = static_cast<std::int32_t>(v); });
            }
        } else {
            write_values(d, words, task - d.row_ptr_tasks - d.column_tasks);
        }
    }
}

template <class T>
void decode_packet(const PacketLayout& layout, const std::byte* packet, std::int32_t* row_ptr, std::int32_t* col_idx,
                   T* values, const Context& context)
{
    Decoding<T> d{layout, packet, row_ptr, col_idx, values, packed_blocks(layout.rows + 1), 0, 0};
    if (layout.columns == ColumnCode::patterns) {
        d.column_tasks = (layout.rows + pattern_rows - 1) / pattern_rows;
    } else if (layout.columns == ColumnCode::packed) {
        d.column_tasks = packed_blocks(layout.nnz);
    }
    if (layout.values != ValueCode::raw) {
        d.value_tasks = packed_blocks(layout.nnz);
    }
    constexpr std::int64_t tasks_each = threads / warp;
    const std::int64_t blocks = (d.row_ptr_tasks + d.column_tasks + d.value_tasks + tasks_each - 1) / tasks_each;
    const std::int64_t most = std::int64_t{std::max(context.compute_units, 1)} * blocks_per_multiprocessor;
    decode_kernel<T><<<static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, most)), threads, 0,
                       static_cast<cudaStream_t>(context.stream)>>>(d);
    RMSP_CUDA_CHECK_LAUNCH("decode_packet");
}

}  // namespace
}  // namespace cuda::decoding

RMSP_VALUE_ROW(PacketDecoding, cuda, .decode_packet = cuda::decoding::decode_packet<T>)

}  // namespace rmsp::kernels
