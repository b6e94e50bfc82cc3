#include <algorithm>
#include <cmath>

#include <core/value_types.hpp>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/spmv/common/common_values.hpp>
#include <kernels/values.hpp>

namespace rmsp::kernels {
namespace {

constexpr int value_threads = 256;
constexpr int blocks_per_multiprocessor = 8;

template <class T>
__global__ void __launch_bounds__(value_threads) examine_kernel(const T* values, std::int64_t n, FoundValues<T>* found)
{
    const BitsOf<T> first = bits_of(__ldg(values));
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        found->first = __ldg(values);
        found->any = 1;
    }
    bool no_float = sizeof(T) == sizeof(float);  // not asked
    bool not_as_first = false;
    for (std::int64_t i = std::int64_t{blockIdx.x} * value_threads + threadIdx.x; i < n && !(no_float && not_as_first);
         i += std::int64_t{gridDim.x} * value_threads) {
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
void find_common_values(const CsrShard<T>& shard, FoundValues<T>* found, const Context& context)
{
    const auto stream = static_cast<cudaStream_t>(context.stream);
    if (shard.nnz > 0) {
        examine_kernel<<<static_cast<unsigned>(blocks_per_multiprocessor * std::max(context.compute_units, 1)),
                         value_threads, 0, stream>>>(shard.values, shard.nnz, found);
        RMSP_CUDA_CHECK_LAUNCH("examine_kernel");
    }
}

template <class T>
CommonValues<T> common_values(const FoundValues<T>& found)
{
    return found.any == 0 ? CommonValues<T>{}
                          : CommonValues<T>{found.no_float == 0, found.not_as_first == 0 && std::isfinite(found.first),
                                            found.first};
}

template <class T>
CommonValues<T> common_values(const CsrShard<T>& shard, const Context& context)
{
    const auto stream = static_cast<cudaStream_t>(context.stream);
    const DeviceArray<FoundValues<T>> on_device(*context.memory, 1);
    RMSP_CUDA_CHECK(cudaMemsetAsync(on_device.data(), 0, sizeof(FoundValues<T>), stream));
    find_common_values(shard, on_device.data(), context);
    return common_values(cuda::read(on_device.data(), stream));
}

#define RMSP_INSTANTIATE(T)                                                                \
    template void find_common_values(const CsrShard<T>&, FoundValues<T>*, const Context&); \
    template CommonValues<T> common_values(const FoundValues<T>&);                         \
    template CommonValues<T> common_values(const CsrShard<T>&, const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels
