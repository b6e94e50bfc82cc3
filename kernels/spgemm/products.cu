#include <cub/device/device_scan.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/device.cuh>

namespace rmsp::kernels::spgemm {
namespace {

constexpr int threads = 256;

unsigned blocks_for(std::int64_t work) { return static_cast<unsigned>((work + threads - 1) / threads); }

template <class T>
__global__ void __launch_bounds__(threads) ones_kernel(T* __restrict__ to, std::int64_t n)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    if (i < n) {
        to[i] = T{1};
    }
}

template <class T>
__global__ void __launch_bounds__(threads)
    round_kernel(const T* __restrict__ counts, std::int64_t n, std::uint32_t* __restrict__ to)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    if (i <= n) {
        to[i] = i < n ? static_cast<std::uint32_t>(counts[i]) : 0u;
    }
}

/// A thread for each entry of C; the warp together for those with many products.
template <class T>
__global__ void __launch_bounds__(threads)
    sum_products_kernel(const std::uint32_t* __restrict__ offsets, const ProductRef* __restrict__ products,
                        std::int64_t entries, T alpha, const T* __restrict__ a_values, const T* __restrict__ b_values,
                        T* __restrict__ values)
{
    constexpr unsigned in_flight = 4;
    constexpr unsigned many = 48;
    const std::int64_t entry = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::uint32_t begin = entry < entries ? __ldg(offsets + entry) : 0u;
    const std::uint32_t end = entry < entries ? __ldg(offsets + entry + 1) : 0u;
    const auto load = [&](std::uint32_t at) { return __ldcs(reinterpret_cast<const int2*>(products) + at); };
    T sum{0};
    if (end - begin <= many) {
        for (std::uint32_t at = begin; at < end; at += in_flight) {
            int2 ref[in_flight];
            T a[in_flight];
            T b[in_flight];
#pragma unroll
            for (unsigned u = 0; u < in_flight; ++u) {
                ref[u] = at + u < end ? load(at + u) : int2{-1, 0};
            }
#pragma unroll
            for (unsigned u = 0; u < in_flight; ++u) {
                a[u] = ref[u].x >= 0 ? __ldg(a_values + ref[u].x) : T{0};
                b[u] = ref[u].x >= 0 ? __ldg(b_values + ref[u].y) : T{0};
            }
#pragma unroll
            for (unsigned u = 0; u < in_flight; ++u) {
                sum += a[u] * b[u];
            }
        }
    }
    for (unsigned rest = __ballot_sync(whole_warp, end - begin > many); rest != 0; rest &= rest - 1) {
        const int source = __ffs(static_cast<int>(rest)) - 1;
        const std::uint32_t its_end = __shfl_sync(whole_warp, end, source);
        T part{0};
        for (std::uint32_t at = __shfl_sync(whole_warp, begin, source) + lane; at < its_end; at += 32) {
            const int2 ref = load(at);
            part += __ldg(a_values + ref.x) * __ldg(b_values + ref.y);
        }
#pragma unroll
        for (int d = 16; d > 0; d /= 2) {
            part += __shfl_xor_sync(whole_warp, part, d);
        }
        sum = lane == source ? part : sum;
    }
    if (entry < entries) {
        values[entry] = alpha * sum;
    }
}

}  // namespace

std::size_t begin_products_bytes(std::int64_t entries)
{
    std::size_t bytes = 0;
    auto* const none = static_cast<std::uint32_t*>(nullptr);
    RMSP_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(nullptr, bytes, none, none, entries + 1));
    return bytes;
}

template <class T>
void begin_products(const T* counts, std::int64_t entries, std::uint32_t* offsets, void* work, std::size_t work_bytes,
                    cudaStream_t stream)
{
    round_kernel<<<blocks_for(entries + 1), threads, 0, stream>>>(counts, entries, offsets);
    RMSP_CUDA_CHECK_LAUNCH("round_kernel");
    RMSP_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(work, work_bytes, offsets, offsets, entries + 1, stream));
}

template <class T>
void sum_products(const std::uint32_t* offsets, const ProductRef* products, std::int64_t entries, T alpha,
                  const T* a_values, const T* b_values, T* values, cudaStream_t stream)
{
    sum_products_kernel<<<blocks_for(entries), threads, 0, stream>>>(offsets, products, entries, alpha, a_values,
                                                                     b_values, values);
    RMSP_CUDA_CHECK_LAUNCH("sum_products_kernel");
}

template <class T>
void fill_ones(T* to, std::int64_t n, cudaStream_t stream)
{
    ones_kernel<<<blocks_for(n), threads, 0, stream>>>(to, n);
    RMSP_CUDA_CHECK_LAUNCH("ones_kernel");
}

#define RMSP_INSTANTIATE(T)                                                                                      \
    template void begin_products(const T*, std::int64_t, std::uint32_t*, void*, std::size_t, cudaStream_t);      \
    template void sum_products(const std::uint32_t*, const ProductRef*, std::int64_t, T, const T*, const T*, T*, \
                               cudaStream_t);                                                                    \
    template void fill_ones(T*, std::int64_t, cudaStream_t);
RMSP_INSTANTIATE(float)
RMSP_INSTANTIATE(double)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::kernels::spgemm
