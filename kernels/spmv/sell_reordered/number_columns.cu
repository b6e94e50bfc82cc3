#include <kernels/cuda_check.cuh>
#include <kernels/cuda_primitives.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/spmv/sell_reordered/reorder.hpp>

namespace rmsp::kernels {
namespace {

constexpr int number_threads = 256;
constexpr int row_lanes = 8;
constexpr std::uint32_t untouched = 0xffffffffu;

unsigned blocks_for(std::int64_t n) { return static_cast<unsigned>((n + number_threads - 1) / number_threads); }

/// The place of each column with entries: of the row that it belongs to, else the first one where a row has an entry in
/// it.
template <class Offset>
__global__ void __launch_bounds__(number_threads)
    place_columns_kernel(std::int64_t rows, std::int64_t diagonal, const std::int32_t* __restrict__ row_place,
                         const Offset* __restrict__ row_ptr, const std::int32_t* __restrict__ col_idx,
                         std::uint32_t* place)
{
    const std::int64_t row = (std::int64_t{blockIdx.x} * number_threads + threadIdx.x) / row_lanes;
    if (row >= rows) {
        return;
    }
    const auto own_place = static_cast<std::uint32_t>(__ldg(row_place + row));
    const std::int64_t end = row_ptr[row + 1];
    for (std::int64_t i = row_ptr[row] + threadIdx.x % row_lanes; i < end; i += row_lanes) {
        const std::int32_t column = __ldg(col_idx + i);
        const std::int64_t own = column - diagonal;
        if (own >= 0 && own < rows) {
            place[column] = static_cast<std::uint32_t>(__ldg(row_place + own));
        } else {
            atomicMin(place + column, own_place);
        }
    }
}

/// Keys of a sort by place, then by column.
__global__ void __launch_bounds__(number_threads)
    keys_kernel(std::int64_t cols, const std::uint32_t* __restrict__ place, std::uint64_t* __restrict__ keys)
{
    const std::int64_t column = std::int64_t{blockIdx.x} * number_threads + threadIdx.x;
    if (column < cols) {
        keys[column] = std::uint64_t{place[column]} << 32 | static_cast<std::uint64_t>(column);
    }
}

/// What the sorted keys say; *touched is 0 before.
__global__ void __launch_bounds__(number_threads)
    numbers_kernel(std::int64_t cols, const std::uint64_t* __restrict__ keys, std::int32_t* __restrict__ column,
                   std::int32_t* __restrict__ number, std::int64_t* touched)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * number_threads + threadIdx.x;
    if (i >= cols || keys[i] >> 32 == untouched) {
        return;
    }
    const auto c = static_cast<std::int32_t>(keys[i] & 0xffffffffu);
    column[i] = c;
    number[c] = static_cast<std::int32_t>(i);
    if (i + 1 == cols || keys[i + 1] >> 32 == untouched) {
        *touched = i + 1;
    }
}

}  // namespace

template <class T>
ColumnNumbers number_columns(const CsrShard<T>& shard, const Ordering& order, const Context& context)
{
    const auto stream = static_cast<cudaStream_t>(context.stream);
    const auto cols = static_cast<std::size_t>(shard.cols);
    ColumnNumbers numbers{DeviceArray<std::int32_t>(*context.memory, cols),
                          DeviceArray<std::int32_t>(*context.memory, cols), 0};
    const DeviceArray<std::uint32_t> place(*context.memory, cols);
    RMSP_CUDA_CHECK(cudaMemsetAsync(place.data(), 0xff, cols * sizeof(std::uint32_t), stream));
    shard.row_ptr.visit([&](const auto* row_ptr) {
        place_columns_kernel<<<blocks_for(shard.rows * row_lanes), number_threads, 0, stream>>>(
            shard.rows, shard.diagonal, order.place.data(), row_ptr, shard.col_idx, place.data());
    });
    RMSP_CUDA_CHECK_LAUNCH("place_columns_kernel");
    const DeviceArray<std::uint64_t> keys(*context.memory, cols);
    const DeviceArray<std::uint64_t> sorted(*context.memory, cols);
    keys_kernel<<<blocks_for(shard.cols), number_threads, 0, stream>>>(shard.cols, place.data(), keys.data());
    RMSP_CUDA_CHECK_LAUNCH("keys_kernel");
    cuda::sort_keys(keys.data(), sorted.data(), shard.cols, context);
    const DeviceArray<std::int64_t> touched(*context.memory, 1);
    RMSP_CUDA_CHECK(cudaMemsetAsync(touched.data(), 0, sizeof(std::int64_t), stream));
    numbers_kernel<<<blocks_for(shard.cols), number_threads, 0, stream>>>(
        shard.cols, sorted.data(), numbers.column.data(), numbers.number.data(), touched.data());
    RMSP_CUDA_CHECK_LAUNCH("numbers_kernel");
    numbers.touched = cuda::read(touched.data(), stream);
    return numbers;
}

#define RMSP_INSTANTIATE(T) template ColumnNumbers number_columns(const CsrShard<T>&, const Ordering&, const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels
