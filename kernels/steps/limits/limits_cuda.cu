#include <algorithm>
#include <cstdint>
#include <string>

#include <cuda_fp16.h>

#include <kernels/cuda_check.cuh>
#include <kernels/steps/limits/limits.hpp>

namespace rmsp::kernels {
namespace cuda::limits {
namespace {

constexpr int threads = 256;
constexpr int blocks_per_multiprocessor = 8;  // fills a multiprocessor's 2048 threads

/// 16 bytes of entries: what a thread loads and stores as one.
template <class T>
struct alignas(16) Entries {
    static constexpr int count = 16 / sizeof(T);
    T of[count];
};

__device__ double as_double(double v) { return v; }
__device__ double as_double(float v) { return v; }
__device__ double as_double(__half v) { return __half2float(v); }

template <class T>
__device__ T number(double v)
{
    return static_cast<T>(v);
}
template <>
__device__ __half number<__half>(double v)
{
    return __float2half(static_cast<float>(v));
}

/// Chains multiply halves in pairs, as the hardware does at full rate.
__device__ void multiply_add(Entries<__half>& v, __half s)
{
    auto* const pair = reinterpret_cast<__half2*>(v.of);
    const __half2 both = __half2half2(s);
#pragma unroll
    for (int i = 0; i < Entries<__half>::count / 2; ++i) {
        pair[i] = __hfma2(pair[i], both, both);
    }
}
template <class T>
__device__ void multiply_add(Entries<T>& v, T s)
{
#pragma unroll
    for (int i = 0; i < Entries<T>::count; ++i) {
        v.of[i] = v.of[i] * s + s;
    }
}

template <class T>
__global__ void __launch_bounds__(threads) fill_kernel(T* a, T* b, T* c, std::int64_t n)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
        a[i] = number<T>(0.1);
        b[i] = number<T>(0.2);
        c[i] = number<T>(0.0);
    }
}

template <class T, Babel kernel>
__global__ void __launch_bounds__(threads) babel_kernel(Entries<T>* a, Entries<T>* b, Entries<T>* c, std::int64_t n)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    const T s = number<T>(0.4);
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
        if constexpr (kernel == Babel::copy) {
            c[i] = a[i];
        } else {
            Entries<T> out;
            const Entries<T> x = kernel == Babel::mul ? c[i] : kernel == Babel::add ? a[i] : b[i];
            const Entries<T> y = kernel == Babel::add ? b[i] : kernel == Babel::triad ? c[i] : x;
#pragma unroll
            for (int k = 0; k < Entries<T>::count; ++k) {
                out.of[k] = kernel == Babel::mul   ? s * x.of[k]
                            : kernel == Babel::add ? x.of[k] + y.of[k]
                                                   : x.of[k] + s * y.of[k];
            }
            (kernel == Babel::mul ? b : kernel == Babel::add ? c : a)[i] = out;
        }
    }
}

/// A sum for each block.
template <class T>
__global__ void __launch_bounds__(threads)
    dot_kernel(const Entries<T>* a, const Entries<T>* b, std::int64_t n, double* sums)
{
    __shared__ double of_warp[threads / 32];
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    double sum = 0;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
        const Entries<T> x = a[i];
        const Entries<T> y = b[i];
#pragma unroll
        for (int k = 0; k < Entries<T>::count; ++k) {
            sum += as_double(x.of[k] * y.of[k]);
        }
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(0xffffffffU, sum, offset);
    }
    if (threadIdx.x % 32 == 0) {
        of_warp[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < threads / 32; ++w) {
            sum += of_warp[w];
        }
        sums[blockIdx.x] = sum;
    }
}

template <class T>
__global__ void __launch_bounds__(threads) chain_kernel(Entries<T>* a, std::int64_t n, int length)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    const T s = number<T>(0.5);
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
        Entries<T> v = a[i];
#pragma unroll 16
        for (int k = 0; k < length; ++k) {
            multiply_add(v, s);
        }
        a[i] = v;
    }
}

template <class F>
void visit(Width width, const F& f)
{
    switch (width) {
        case Width::half_precision:
            return f(__half{});
        case Width::single_precision:
            return f(float{});
        case Width::double_precision:
            return f(double{});
    }
}

cudaStream_t stream_of(const Context& context) { return static_cast<cudaStream_t>(context.stream); }

unsigned blocks_for(std::int64_t n, const Context& context)
{
    const std::int64_t full = std::int64_t{std::max(context.compute_units, 1)} * blocks_per_multiprocessor;
    return static_cast<unsigned>(std::clamp<std::int64_t>((n + threads - 1) / threads, 1, std::min(full, limit_sums)));
}

template <class T>
std::int64_t groups_of(const LimitArrays& arrays)
{
    if (arrays.n % Entries<T>::count != 0) {
        throw Error(ErrorCode::internal, "limits: " + std::to_string(arrays.n) + " entries are not whole 16 bytes");
    }
    return arrays.n / Entries<T>::count;
}

void limit_fill(const LimitArrays& arrays, const Context& context)
{
    visit(arrays.width, [&](auto type) {
        using T = decltype(type);
        fill_kernel<T><<<blocks_for(arrays.n, context), threads, 0, stream_of(context)>>>(
            static_cast<T*>(arrays.a), static_cast<T*>(arrays.b), static_cast<T*>(arrays.c), arrays.n);
        RMSP_CUDA_CHECK_LAUNCH("limit_fill");
    });
}

template <class T>
void run_babel(Babel kernel, const LimitArrays& arrays, const Context& context)
{
    const std::int64_t n = groups_of<T>(arrays);
    auto* const a = static_cast<Entries<T>*>(arrays.a);
    auto* const b = static_cast<Entries<T>*>(arrays.b);
    auto* const c = static_cast<Entries<T>*>(arrays.c);
    const unsigned blocks = blocks_for(n, context);
    switch (kernel) {
        case Babel::copy:
            babel_kernel<T, Babel::copy><<<blocks, threads, 0, stream_of(context)>>>(a, b, c, n);
            break;
        case Babel::mul:
            babel_kernel<T, Babel::mul><<<blocks, threads, 0, stream_of(context)>>>(a, b, c, n);
            break;
        case Babel::add:
            babel_kernel<T, Babel::add><<<blocks, threads, 0, stream_of(context)>>>(a, b, c, n);
            break;
        case Babel::triad:
            babel_kernel<T, Babel::triad><<<blocks, threads, 0, stream_of(context)>>>(a, b, c, n);
            break;
        case Babel::dot:
            dot_kernel<T><<<blocks, threads, 0, stream_of(context)>>>(a, b, n, arrays.sums);
            break;
    }
    RMSP_CUDA_CHECK_LAUNCH("babel");
}

void babel(Babel kernel, const LimitArrays& arrays, const Context& context)
{
    visit(arrays.width, [&](auto type) { run_babel<decltype(type)>(kernel, arrays, context); });
}

void chain(int length, const LimitArrays& arrays, const Context& context)
{
    visit(arrays.width, [&](auto type) {
        using T = decltype(type);
        const std::int64_t n = groups_of<T>(arrays);
        chain_kernel<T>
            <<<blocks_for(n, context), threads, 0, stream_of(context)>>>(static_cast<Entries<T>*>(arrays.a), n, length);
        RMSP_CUDA_CHECK_LAUNCH("chain");
    });
}

bool has_width(Width, const Context&) { return true; }

}  // namespace
}  // namespace cuda::limits

RMSP_ROW(Limits, cuda, .limit_fill = cuda::limits::limit_fill, .babel = cuda::limits::babel,
         .chain = cuda::limits::chain, .has_width = cuda::limits::has_width)

}  // namespace rmsp::kernels
