#include <algorithm>
#include <cmath>

#include <kernels/cuda_check.cuh>
#include <kernels/spmv/common_values.hpp>
#include <kernels/values.hpp>

namespace rmsp::kernels {
namespace {

constexpr int threads = 256;
constexpr int blocks_per_multiprocessor = 8;

struct Exceptions {
    unsigned no_float = 0;      ///< whether there are values that are no floats,
    unsigned not_as_first = 0;  ///< or that differ from the first
};

template <class T>
__global__ void __launch_bounds__(threads) examine_kernel(const T* values, std::int64_t n, Exceptions* found)
{
    const BitsOf<T> first = bits_of(__ldg(values));
    bool no_float = sizeof(T) == sizeof(float);  // not asked
    bool not_as_first = false;
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n && !(no_float && not_as_first);
         i += std::int64_t{gridDim.x} * threads) {
        const T value = __ldg(values + i);
        no_float = no_float || !is_float(value);
        not_as_first = not_as_first || bits_of(value) != first;
    }
    if (__any_sync(0xffffffffu, no_float) != 0 && threadIdx.x % 32 == 0) {
        found->no_float = 1;
    }
    if (__any_sync(0xffffffffu, not_as_first) != 0 && threadIdx.x % 32 == 0) {
        found->not_as_first = 1;
    }
}

}  // namespace

template <class T>
CommonValues<T> common_values(const CsrShard<T>& shard, const Context& context)
{
    if (shard.nnz == 0) {
        return {};
    }
    const auto stream = static_cast<cudaStream_t>(context.stream);
    const DeviceArray<Exceptions> found(*context.memory, 1);
    RMSP_CUDA_CHECK(cudaMemsetAsync(found.data(), 0, sizeof(Exceptions), stream));
    examine_kernel<<<static_cast<unsigned>(blocks_per_multiprocessor * std::max(context.compute_units, 1)), threads, 0,
                     stream>>>(shard.values, shard.nnz, found.data());
    RMSP_CUDA_CHECK_LAUNCH("examine_kernel");
    Exceptions exceptions;
    T first = 0;
    RMSP_CUDA_CHECK(cudaMemcpyAsync(&exceptions, found.data(), sizeof exceptions, cudaMemcpyDeviceToHost, stream));
    RMSP_CUDA_CHECK(cudaMemcpyAsync(&first, shard.values, sizeof first, cudaMemcpyDeviceToHost, stream));
    RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
    return {exceptions.no_float == 0, exceptions.not_as_first == 0 && std::isfinite(first), first};
}

template CommonValues<float> common_values(const CsrShard<float>&, const Context&);
template CommonValues<double> common_values(const CsrShard<double>&, const Context&);

}  // namespace rmsp::kernels
