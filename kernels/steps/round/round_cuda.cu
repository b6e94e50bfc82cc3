#include <algorithm>
#include <cstdint>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/steps/round/round.hpp>

namespace rmsp::kernels {
namespace cuda::rounding {
namespace {

constexpr int threads = 256;
constexpr int blocks_per_multiprocessor = 8;  // fills a multiprocessor's 2048 threads

template <class From, class To>
__global__ void __launch_bounds__(threads) convert_kernel(const From* from, std::int64_t n, To* to)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
        to[i] = static_cast<To>(from[i]);
    }
}

cudaStream_t stream_of(const Context& context) { return static_cast<cudaStream_t>(context.stream); }

template <class From, class To>
void convert(const From* from, std::int64_t n, To* to, const Context& context)
{
    if (n > 0) {
        const std::int64_t full = std::int64_t{std::max(context.compute_units, 1)} * blocks_per_multiprocessor;
        const auto blocks = static_cast<unsigned>(std::clamp<std::int64_t>((n + threads - 1) / threads, 1, full));
        convert_kernel<<<blocks, threads, 0, stream_of(context)>>>(from, n, to);
        RMSP_CUDA_CHECK_LAUNCH("convert entries");
    }
}

}  // namespace
}  // namespace cuda::rounding

RMSP_ROW(Rounding, cuda, .narrow_entries = cuda::rounding::convert<double, float>,
         .widen_entries = cuda::rounding::convert<float, double>)

}  // namespace rmsp::kernels
