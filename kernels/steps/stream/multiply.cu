#include <cstdint>

#include <kernels/cuda_check.cuh>
#include <kernels/steps/stream/stream.hpp>

namespace rmsp::kernels {
namespace cuda::packets {
namespace {

constexpr int threads = 256;

template <class Entry>
__device__ __forceinline__ const Entry* at(const std::byte* packet, std::int64_t offset)
{
    return reinterpret_cast<const Entry*>(packet + offset);
}

__device__ __forceinline__ PackedBlock load(const std::byte* packet, std::int64_t blocks, std::int64_t index)
{
    const auto raw = __ldg(at<uint4>(packet, blocks) + index);
    return {raw.x, raw.y, raw.z, raw.w};
}

template <class T, ValueCode Code>
__device__ __forceinline__ T value_of(const T* table, std::uint32_t code)
{
    if constexpr (Code == ValueCode::dictionary) {
        return __ldg(table + code);
    } else if constexpr (Code == ValueCode::integers) {
        return static_cast<T>(static_cast<std::int32_t>(code));
    } else {
        return static_cast<T>(__uint_as_float(code));
    }
}

/// One thread a row. Neighbouring rows share their list of columns, so that what a warp reads of x lies side by side;
/// codes of several rows are in one line, and the blocks that describe them are read once for up to 256 entries.
template <class T, ValueCode Code>
__global__ void __launch_bounds__(threads)
    multiply_kernel(const __grid_constant__ PacketLayout layout, const std::byte* __restrict__ packet, T alpha,
                    const T* __restrict__ x, T beta, T* __restrict__ y)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    if (row >= layout.rows) {
        return;
    }
    const auto* const words = at<std::uint32_t>(packet, layout.words);
    const auto* const table = at<T>(packet, layout.dictionary);
    const auto integer = [&](std::int64_t blocks, std::int64_t i) {
        return unpack(load(packet, blocks, i / packed_block), words, static_cast<std::uint32_t>(i % packed_block));
    };
    const std::uint32_t begin = integer(layout.row_ptr_blocks, row);
    const std::uint32_t end = integer(layout.row_ptr_blocks, row + 1);
    const std::uint32_t list =
        __ldg(at<std::uint32_t>(packet, layout.pattern_start) + integer(layout.column_blocks, row));
    const auto* offset = at<std::uint32_t>(packet, layout.pattern_offsets) + list;
    const auto global_row = static_cast<std::uint32_t>(layout.first_row + row);
    T sum = 0;
    for (std::uint32_t i = begin; i < end;) {
        const PackedBlock block = load(packet, layout.value_blocks, i / packed_block);
        const std::uint32_t stop = min(end, (i / packed_block + 1) * packed_block);
#pragma unroll 4
        for (; i < stop; ++i, ++offset) {
            const T value = value_of<T, Code>(table, unpack(block, words, i % packed_block));
            sum += value * __ldg(x + (global_row + __ldg(offset)));
        }
    }
    y[row] = beta == T{0} ? alpha * sum : alpha * sum + beta * y[row];
}

template <class T>
void multiply_packet(const PacketLayout& layout, const std::byte* packet, T alpha, const T* x, T beta, T* y,
                     const Context& context)
{
    if (layout.rows == 0) {
        return;
    }
    const auto launch = [&](auto kernel) {
        kernel<<<static_cast<unsigned>((layout.rows + threads - 1) / threads), threads, 0,
                 static_cast<cudaStream_t>(context.stream)>>>(layout, packet, alpha, x, beta, y);
    };
    switch (layout.values) {
        case ValueCode::dictionary:
            launch(multiply_kernel<T, ValueCode::dictionary>);
            break;
        case ValueCode::integers:
            launch(multiply_kernel<T, ValueCode::integers>);
            break;
        default:
            launch(multiply_kernel<T, ValueCode::floats>);
            break;
    }
    RMSP_CUDA_CHECK_LAUNCH("multiply_packet");
}

}  // namespace
}  // namespace cuda::packets

RMSP_VALUE_ROW(PacketProduct, cuda, .multiply_packet = cuda::packets::multiply_packet<T>)

}  // namespace rmsp::kernels
