#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>
#include <kernels/cuda_check.cuh>

namespace rmsp::kernels::cuda {

template <class T>
__global__ void scale_kernel(std::int64_t n, T beta, T* __restrict__ y)
{
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n;
         i += std::int64_t{gridDim.x} * blockDim.x) {
        y[i] *= beta;
    }
}

/// y = beta y, which kernels that add to y run first; 0 is written without reading y.
template <class T>
void scale(std::int64_t n, T beta, T* y, int compute_units, cudaStream_t stream)
{
    if (n == 0 || beta == T{1}) {
        return;
    }
    if (beta == T{0}) {
        RMSP_CUDA_CHECK(cudaMemsetAsync(y, 0, static_cast<std::size_t>(n) * sizeof(T), stream));
        return;
    }
    constexpr int threads = 256;
    const auto blocks = static_cast<unsigned>(
        std::min<std::int64_t>((n + threads - 1) / threads, std::int64_t{8} * std::max(compute_units, 1)));
    scale_kernel<<<blocks, threads, 0, stream>>>(n, beta, y);
    RMSP_CUDA_CHECK_LAUNCH("scale_kernel");
}

}  // namespace rmsp::kernels::cuda
