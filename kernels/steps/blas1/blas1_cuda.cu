#include <algorithm>
#include <cstdint>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_launch.cuh>
#include <kernels/steps/blas1/blas1.hpp>

namespace rmsp::kernels {
namespace cuda::blas1 {
namespace {

constexpr int threads = 256;
constexpr int blocks_per_multiprocessor = 8;  // fills a multiprocessor's 2048 threads
constexpr int most_dot_blocks = (dot_workspace_bytes - 16) / 8;
constexpr int unroll = 4;  // loads in flight of each thread and operand

unsigned grid_for(std::int64_t n, const Context& context)
{
    const std::int64_t full = std::int64_t{std::max(context.compute_units, 1)} * blocks_per_multiprocessor;
    return static_cast<unsigned>(std::clamp<std::int64_t>((n + threads * unroll - 1) / (threads * unroll), 1, full));
}

// No __restrict__: the operands may be the same vector.
template <class T>
__global__ void __launch_bounds__(threads) axpy_kernel(T alpha, const T* x, T* y, std::int64_t n)
{
    wait_for_kernel_before();
    const std::int64_t step = std::int64_t{gridDim.x} * threads * unroll;
    for (std::int64_t first = std::int64_t{blockIdx.x} * threads * unroll + threadIdx.x; first < n; first += step) {
        T a[unroll];
        T b[unroll];
#pragma unroll
        for (int k = 0; k < unroll; ++k) {
            const std::int64_t i = first + k * threads;
            a[k] = i < n ? x[i] : T{0};
            b[k] = i < n ? y[i] : T{0};
        }
#pragma unroll
        for (int k = 0; k < unroll; ++k) {
            const std::int64_t i = first + k * threads;
            if (i < n) {
                y[i] = b[k] + alpha * a[k];
            }
        }
    }
}

template <class T>
__global__ void __launch_bounds__(threads) scal_kernel(T alpha, T* x, std::int64_t n)
{
    wait_for_kernel_before();
    const std::int64_t step = std::int64_t{gridDim.x} * threads * unroll;
    for (std::int64_t first = std::int64_t{blockIdx.x} * threads * unroll + threadIdx.x; first < n; first += step) {
        T a[unroll];
#pragma unroll
        for (int k = 0; k < unroll; ++k) {
            const std::int64_t i = first + k * threads;
            a[k] = i < n ? x[i] : T{0};
        }
#pragma unroll
        for (int k = 0; k < unroll; ++k) {
            const std::int64_t i = first + k * threads;
            if (i < n) {
                x[i] = alpha == T{0} ? T{0} : alpha * a[k];
            }
        }
    }
}

template <class T>
__global__ void __launch_bounds__(threads) copy_kernel(const T* x, T* y, std::int64_t n)
{
    wait_for_kernel_before();
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n;
         i += std::int64_t{gridDim.x} * threads) {
        y[i] = x[i];
    }
}

/// Each block leaves its sum in `sums`; the last one to finish adds them, in their order. `finished` is 0 before and
/// after.
template <class T>
__global__ void __launch_bounds__(threads)
    dot_kernel(const T* x, const T* y, std::int64_t n, unsigned* finished, double* sums, double* result)
{
    __shared__ double warp_sums[threads / 32];
    __shared__ bool last;
    double own[unroll] = {};
    const std::int64_t step = std::int64_t{gridDim.x} * threads * unroll;
    for (std::int64_t first = std::int64_t{blockIdx.x} * threads * unroll + threadIdx.x; first < n; first += step) {
#pragma unroll
        for (int k = 0; k < unroll; ++k) {
            const std::int64_t i = first + k * threads;
            own[k] += i < n ? static_cast<double>(x[i]) * static_cast<double>(y[i]) : 0.0;
        }
    }
    double sum = block_sum<threads>((own[0] + own[1]) + (own[2] + own[3]), warp_sums);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(finished, gridDim.x - 1) == gridDim.x - 1;  // wraps to 0
    }
    __syncthreads();
    if (!last) {
        return;
    }
    __threadfence();
    sum = 0;
    for (unsigned b = threadIdx.x; b < gridDim.x; b += threads) {
        sum += __ldcg(sums + b);
    }
    sum = block_sum<threads>(sum, warp_sums);
    if (threadIdx.x == 0) {
        *result = sum;
    }
}

cudaStream_t stream_of(const Context& context) { return static_cast<cudaStream_t>(context.stream); }

template <class T>
void axpy(T alpha, const T* x, T* y, std::int64_t n, const Context& context)
{
    if (n > 0 && alpha != T{0}) {
        launch_early("axpy", axpy_kernel<T>, dim3(grid_for(n, context)), threads, context, alpha, x, y, n);
    }
}

template <class T>
void scal(T alpha, T* x, std::int64_t n, const Context& context)
{
    if (n > 0) {
        launch_early("scal", scal_kernel<T>, dim3(grid_for(n, context)), threads, context, alpha, x, n);
    }
}

template <class T>
void copy(const T* x, T* y, std::int64_t n, const Context& context)
{
    if (n == 0 || x == y) {
        return;
    }
    if (context.launches != nullptr) {  // a copy of the driver's cannot be kept
        launch_early("copy", copy_kernel<T>, dim3(grid_for(n, context)), threads, context, x, y, n);
        return;
    }
    RMSP_CUDA_CHECK(
        cudaMemcpyAsync(y, x, static_cast<std::size_t>(n) * sizeof(T), cudaMemcpyDeviceToDevice, stream_of(context)));
}

template <class T>
void dot(const T* x, const T* y, std::int64_t n, void* workspace, double* result, const Context& context)
{
    auto* const finished = static_cast<unsigned*>(workspace);
    auto* const sums = reinterpret_cast<double*>(static_cast<char*>(workspace) + 16);
    const unsigned blocks = std::min<unsigned>(grid_for(n, context), most_dot_blocks);
    dot_kernel<<<blocks, threads, 0, stream_of(context)>>>(x, y, n, finished, sums, result);
    RMSP_CUDA_CHECK_LAUNCH("dot");
}

}  // namespace
}  // namespace cuda::blas1

RMSP_VALUE_ROW(Blas1, cuda, .axpy = cuda::blas1::axpy<T>, .scal = cuda::blas1::scal<T>, .copy = cuda::blas1::copy<T>,
               .dot = cuda::blas1::dot<T>)

}  // namespace rmsp::kernels
