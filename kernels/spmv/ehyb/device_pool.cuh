#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <kernels/context.hpp>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_primitives.cuh>
#include <kernels/spmv/ehyb/pool.hpp>
#include <kernels/spmv/ehyb/search.cuh>

namespace rmsp::kernels::ehyb {
namespace {

constexpr int step_threads = 256;
/// That take the entries of one row together.
constexpr int entry_lanes = 8;

template <class F>
__global__ void __launch_bounds__(step_threads) step_kernel(std::int64_t n, F f)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * step_threads + threadIdx.x;
    if (i < n) {
        f(i);
    }
}

template <class F>
__global__ void __launch_bounds__(step_threads) entry_step_kernel(Structure a, F f)
{
    const std::int64_t row = (std::int64_t{blockIdx.x} * step_threads + threadIdx.x) / entry_lanes;
    if (row < a.rows) {
        const std::int64_t end = a.first(row + 1);
        for (std::int64_t i = a.first(row) + threadIdx.x % entry_lanes; i < end; i += entry_lanes) {
            f(row, i);
        }
    }
}

/// A GPU, as HostPool: steps are queued on its stream, and only read() and wait() wait.
class DevicePool {
public:
    template <class T>
    using Array = DeviceArray<T>;

    explicit DevicePool(const Context& context) : context_(context), stream_(static_cast<cudaStream_t>(context.stream))
    {
    }

    template <class T>
    DeviceArray<T> array(std::int64_t n) const
    {
        return DeviceArray<T>(*context_.memory, static_cast<std::size_t>(n));
    }
    template <class T>
    DeviceArray<T> copy(const std::vector<T>& host) const
    {
        DeviceArray<T> device(*context_.memory, host.size());
        if (!host.empty()) {
            RMSP_CUDA_CHECK(
                cudaMemcpyAsync(device.data(), host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice, stream_));
        }
        return device;
    }
    template <class T>
    std::vector<T> read(const T* from, std::int64_t n) const
    {
        std::vector<T> host(static_cast<std::size_t>(n));
        RMSP_CUDA_CHECK(cudaMemcpyAsync(host.data(), from, host.size() * sizeof(T), cudaMemcpyDeviceToHost, stream_));
        wait();
        return host;
    }
    template <class F>
    void each(std::int64_t n, const F& f) const
    {
        if (n > 0) {
            step_kernel<<<blocks(n), step_threads, 0, stream_>>>(n, f);
            RMSP_CUDA_CHECK_LAUNCH("step_kernel");
        }
    }
    template <class F>
    void each_entry(const Structure& a, const F& f) const
    {
        if (a.rows > 0) {
            entry_step_kernel<<<blocks(a.rows * entry_lanes), step_threads, 0, stream_>>>(a, f);
            RMSP_CUDA_CHECK_LAUNCH("entry_step_kernel");
        }
    }
    template <class I>
    void sum_before(I* numbers, std::int64_t n) const
    {
        cuda::exclusive_sum(numbers, n, context_);
    }
    std::uint64_t most(const std::uint64_t* numbers, std::int64_t n) const
    {
        const DeviceArray<std::uint64_t> found(*context_.memory, 1);
        cuda::largest(numbers, n, found.data(), context_);
        return read(found.data(), 1)[0];
    }
    void sort(DeviceArray<std::uint64_t>& keys, DeviceArray<std::int32_t>& values, std::int64_t n, int bits) const
    {
        if (n == 0 || bits == 0) {
            return;
        }
        DeviceArray<std::uint64_t> other_keys(*context_.memory, keys.size());
        DeviceArray<std::int32_t> other_values(*context_.memory, values.size());
        std::uint64_t* key = keys.data();
        std::uint64_t* other_key = other_keys.data();
        std::int32_t* value = values.data();
        std::int32_t* other_value = other_values.data();
        cuda::sort_pairs_in_turn(key, other_key, value, other_value, n, bits, context_);
        if (key != keys.data()) {
            std::swap(keys, other_keys);
        }
        if (value != values.data()) {
            std::swap(values, other_values);
        }
    }
    /// As HostPool's.
    std::int32_t search(const Structure& a, std::int64_t start, std::int32_t* distance, std::int32_t most_levels) const
    {
        const DeviceArray<std::int32_t> queue(*context_.memory, static_cast<std::size_t>(a.rows));
        const DeviceArray<Search> search(*context_.memory, 1);
        queue_search(a, start, most_levels, distance, queue.data(), search.data(), context_);
        return read(&search.data()->levels, 1)[0];
    }
    void wait() const { RMSP_CUDA_CHECK(cudaStreamSynchronize(stream_)); }

private:
    static unsigned blocks(std::int64_t n) { return static_cast<unsigned>((n + step_threads - 1) / step_threads); }

    const Context& context_;
    cudaStream_t stream_;
};

}  // namespace
}  // namespace rmsp::kernels::ehyb
