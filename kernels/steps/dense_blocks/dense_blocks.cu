#include <algorithm>
#include <cstdint>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_load.cuh>
#include <kernels/steps/dense_blocks/dense_blocks.hpp>

namespace rmsp::kernels {
namespace cuda::dense_blocks {
namespace {

constexpr int threads = 256;
constexpr int blocks_per_multiprocessor = 8;  // fills a multiprocessor's 2048 threads

/// A thread a row. Those of one block read each of its columns together, and the same entries of r.
template <class T>
__global__ void __launch_bounds__(threads)
    multiply_kernel(const T* __restrict__ blocks, int size, std::int64_t rows, const T* __restrict__ r,
                    T* __restrict__ z, const double* skip)
{
    if (skip != nullptr && *skip != 0) {
        return;
    }
    const std::int64_t step = std::int64_t{gridDim.x} * threads;
    for (std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x; row < rows; row += step) {
        const std::int64_t first = row / size * size;
        const std::int64_t left = rows - first;
        const int n = left < size ? static_cast<int>(left) : size;
        const T* const column = blocks + first * size + (row - first);
        T sum = 0;
#pragma unroll 4
        for (int k = 0; k < n; ++k) {
            sum += column[k * size] * r[first + k];
        }
        z[row] = sum;
    }
}

template <class T>
void multiply_blocks(const T* blocks, int size, std::int64_t rows, const T* r, T* z, const double* skip,
                     const Context& context)
{
    if (rows == 0) {
        return;
    }
    const std::int64_t full = std::int64_t{std::max(context.compute_units, 1)} * blocks_per_multiprocessor;
    const auto grid = static_cast<unsigned>(std::min<std::int64_t>((rows + threads - 1) / threads, full));
    multiply_kernel<<<grid, threads, 0, static_cast<cudaStream_t>(context.stream)>>>(blocks, size, rows, r, z, skip);
    RMSP_CUDA_CHECK_LAUNCH("multiply_blocks");
}

void load_dense_blocks(const Context& /*context*/)
{
    static cuda::LoadedKernels loaded;
    loaded.need([] {
        cudaFuncAttributes attributes{};
#define RMSP_LOAD(T) RMSP_CUDA_CHECK(cudaFuncGetAttributes(&attributes, multiply_kernel<T>));
        RMSP_FOR_EACH_VALUE_TYPE(RMSP_LOAD)
#undef RMSP_LOAD
    });
}

}  // namespace
}  // namespace cuda::dense_blocks

RMSP_ROW(DenseBlockLoading, cuda, .load_dense_blocks = cuda::dense_blocks::load_dense_blocks)

RMSP_VALUE_ROW(DenseBlocks, cuda, .multiply_blocks = cuda::dense_blocks::multiply_blocks<T>)

}  // namespace rmsp::kernels
