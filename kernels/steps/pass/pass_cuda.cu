#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_launch.cuh>
#include <kernels/cuda_load.cuh>
#include <kernels/steps/pass/finish_sums.cuh>
#include <kernels/steps/pass/pass.hpp>

namespace rmsp::kernels {
namespace cuda::passes {
namespace {

constexpr int threads = pass_threads;
/// Sums without rounding take twice as many registers.
constexpr int blocks_per_multiprocessor(bool exact) { return exact ? 2 : 4; }
constexpr int unroll = 4;  // loads in flight of each thread and operand

cudaStream_t stream_of(const Context& context) { return static_cast<cudaStream_t>(context.stream); }

/// Where the inner products of a pass go.
struct DotPlaces {
    std::int16_t into[most_pass_dots];
};

template <class T>
DotPlaces places_of(const Pass<T>& pass)
{
    DotPlaces places{};
    for (int d = 0; d < pass.dots; ++d) {
        places.into[d] = pass.dot[d].into;
    }
    return places;
}

/// The entries that a thread works on at a time: i, i + threads, ...
template <class T>
__device__ __forceinline__ void load(T (&value)[unroll], const T* v, std::int64_t i, std::int64_t n)
{
#pragma unroll
    for (int k = 0; k < unroll; ++k) {
        value[k] = i + k * threads < n ? v[i + k * threads] : T{0};
    }
}

/// Operands of a term or an inner product: what an update of this pass gave, or from memory. Unrolled, so that results
/// stay in registers.
template <int Updates, class T>
__device__ __forceinline__ void fetch(T (&value)[unroll], const T (&result)[Updates > 0 ? Updates : 1][unroll],
                                      const T* v, int from, std::int64_t i, std::int64_t n)
{
    if (from < 0) {
        load(value, v, i, n);
        return;
    }
#pragma unroll
    for (int u = 0; u < Updates; ++u) {
        if (u == from) {
#pragma unroll
            for (int k = 0; k < unroll; ++k) {
                value[k] = result[u][k];
            }
        }
    }
}

/// Sums of products of a thread, as ExactSums has them.
template <int Dots>
struct RoundedSums {
    struct Digits {};

    __device__ explicit RoundedSums(Digits&) {}
    __device__ __forceinline__ void add_product(int d, double a, double b) { sum[d] += a * b; }

    double sum[Dots > 0 ? Dots : 1] = {};
};

/// The thread's part of inner products that are sums of numbers which are there.
template <int Dots, class T>
__device__ __forceinline__ void add_parts(const Pass<T>& pass, double (&sum)[Dots > 0 ? Dots : 1])
{
    constexpr std::int64_t tile = std::int64_t{threads} * unroll;
#pragma unroll
    for (int d = 0; d < Dots; ++d) {
        if (d < pass.dots && pass.dot[d].parts != nullptr) {
            const double* const parts = pass.dot[d].parts;
            const std::int64_t count = pass.dot[d].count;
            for (std::int64_t i = std::int64_t{blockIdx.x} * tile + threadIdx.x; i < count; i += gridDim.x * tile) {
#pragma unroll
                for (int k = 0; k < unroll; ++k) {
                    sum[d] += i + k * threads < count ? parts[i + k * threads] : 0.0;
                }
            }
        }
    }
}

// No __restrict__: the operands may be the same vectors.
template <class T, int Updates, int Dots, bool Exact>
__global__ void __launch_bounds__(threads, blocks_per_multiprocessor(Exact))
    pass_kernel(const __grid_constant__ Pass<T> pass, const __grid_constant__ PassPlace place)
{
    wait_for_kernel_before();
    // All that is read first is read at once: what each of these loads would wait is what a small system takes.
    const double stopped = place.bank[scalar_stopped];
    const bool is_term = Updates > 0 && threadIdx.x < most_pass_terms;
    const double of_term = is_term ? place.bank[pass.term[threadIdx.x].scalar] : 0.0;
    const ProgramPart program(place);
    constexpr std::int64_t tile = std::int64_t{threads} * unroll;
    double of_parts[Dots > 0 ? Dots : 1] = {};
    if constexpr (!Exact) {
        add_parts<Dots>(pass, of_parts);
    }
    if (stopped != 0 && !pass.always) {
        return;
    }
    __shared__ T scalar[most_pass_terms];
    __shared__ ProgramRoom room;
    if (is_term) {
        scalar[threadIdx.x] = static_cast<T>(pass.term[threadIdx.x].sign * of_term);
    }
    program.put(room);
    __syncthreads();
    using Sums = std::conditional_t<Exact, ExactSums<Dots>, RoundedSums<Dots>>;
    __shared__ typename Sums::Digits digits;
    Sums sums(digits);
    if constexpr (!Exact) {
#pragma unroll
        for (int d = 0; d < Dots; ++d) {
            sums.sum[d] = of_parts[d];
        }
    }
    for (std::int64_t i = std::int64_t{blockIdx.x} * tile + threadIdx.x; i < pass.n; i += gridDim.x * tile) {
        T result[Updates > 0 ? Updates : 1][unroll];
#pragma unroll
        for (int u = 0; u < Updates; ++u) {
            if (u < pass.updates) {
                const PassUpdate<T>& update = pass.update[u];
#pragma unroll
                for (int k = 0; k < unroll; ++k) {
                    result[u][k] = T{0};
                }
                for (int t = update.first; t < update.end; ++t) {
                    const T c = scalar[t];
                    if (c == T{0}) {
                        continue;
                    }
                    T value[unroll];
                    fetch<Updates>(value, result, pass.term[t].v, pass.term[t].from, i, pass.n);
                    if (pass.term[t].times != nullptr) {
                        T times[unroll];
                        load(times, pass.term[t].times, i, pass.n);
#pragma unroll
                        for (int k = 0; k < unroll; ++k) {
                            value[k] *= times[k];
                        }
                    }
#pragma unroll
                    for (int k = 0; k < unroll; ++k) {
                        result[u][k] += c * value[k];
                    }
                }
#pragma unroll
                for (int k = 0; k < unroll; ++k) {
                    if (i + k * threads < pass.n) {
                        update.out[i + k * threads] = result[u][k];
                    }
                }
            }
        }
#pragma unroll
        for (int d = 0; d < Dots; ++d) {
            if (d < pass.dots && pass.dot[d].parts == nullptr) {
                T a[unroll];
                T b[unroll];
                fetch<Updates>(a, result, pass.dot[d].a, pass.dot[d].a_from, i, pass.n);
                if (pass.dot[d].b == pass.dot[d].a && pass.dot[d].b_from == pass.dot[d].a_from) {
#pragma unroll
                    for (int k = 0; k < unroll; ++k) {
                        b[k] = a[k];
                    }
                } else {
                    fetch<Updates>(b, result, pass.dot[d].b, pass.dot[d].b_from, i, pass.n);
                }
#pragma unroll
                for (int k = 0; k < unroll; ++k) {
                    if (i + k * threads < pass.n) {
                        sums.add_product(d, static_cast<double>(a[k]), static_cast<double>(b[k]));
                    }
                }
            }
        }
    }
    let_kernel_behind_start();
    if (Dots == 0 && place.beside) {
        if (blockIdx.x == 0 && place.ops > 0) {
            run_with_sums(room, nullptr, 0, nullptr, place);
        }
        return;
    }
    if (Dots > 0 || place.ops > 0) {
        DotPlaces places;
#pragma unroll
        for (int d = 0; d < most_pass_dots; ++d) {
            places.into[d] = pass.dot[d].into;
        }
        if constexpr (Exact) {
            finish_exact_sums(sums, digits, pass.dots, places.into, room, place);
        } else {
            finish_sums<Dots>(sums.sum, pass.dots, places.into, room, place);
        }
    }
}

template <class T>
__global__ void finish_kernel(const DotPlaces places, int dots, bool always, const __grid_constant__ PassPlace place)
{
    if (place.bank[scalar_stopped] != 0 && !always) {
        return;
    }
    for (int d = 0; d < dots; ++d) {
        double sum = 0;
        for (int first = 0; first < place.devices; first += place.group) {
            double of_group = 0;
            for (int device = first; device < first + place.group; ++device) {
                of_group += static_cast<const volatile double*>(place.left)[device * most_pass_dots + d];
            }
            sum += of_group;
        }
        place.bank[places.into[d]] = sum;
    }
    run_program(place.bank, place.progress, place.program, place.ops);
}

/// For sums that pass_kernel() has sent.
__global__ void __launch_bounds__(threads)
    finish_sent_kernel(const DotPlaces places, int dots, bool always, const __grid_constant__ PassPlace place)
{
    if (place.bank[scalar_stopped] != 0 && !always) {
        return;
    }
    __shared__ double total[most_pass_dots];
    __shared__ ProgramRoom room;
    ProgramPart(place).put(room);
    if (static_cast<int>(threadIdx.x) < dots) {
        total[threadIdx.x] = own_sums(place)[threadIdx.x];
    }
    __syncthreads();
    add_devices(total, dots, place);
    run_with_sums(room, total, dots, places.into, place);
}

/// For exact sums that pass_kernel() has left or sent.
__global__ void __launch_bounds__(threads)
    finish_exact_kernel(const DotPlaces places, int dots, bool always, const __grid_constant__ PassPlace place)
{
    if (place.bank[scalar_stopped] != 0 && !always) {
        return;
    }
    __shared__ std::int64_t words[pass_words];
    __shared__ double total[most_pass_dots];
    __shared__ ProgramRoom room;
    ProgramPart(place).put(room);
    for (int i = static_cast<int>(threadIdx.x); i < dots * exact::words; i += threads) {
        std::int64_t word = 0;
        if (place.sums == PassSums::sent) {
            word = own_words(place)[i];
        } else {
            for (int device = 0; device < place.devices; ++device) {
                const std::int64_t of_device =
                    static_cast<const volatile std::int64_t*>(place.exact)[device * pass_words + i];
                word = i % exact::words == exact::digits ? word | of_device : word + of_device;
            }
        }
        words[i] = word;
    }
    if (place.sums == PassSums::sent) {
        add_words(words, dots, place);
    } else {
        __syncthreads();
    }
    round_words(words, dots, total);
    run_with_sums(room, total, dots, places.into, place);
}

template <class T, int Updates, int Dots, bool Exact>
void launch(const Pass<T>& pass, const PassPlace& place, const Context& context)
{
    constexpr std::int64_t tile = std::int64_t{threads} * unroll;
    const std::int64_t full = std::min<std::int64_t>(
        std::int64_t{std::max(context.compute_units, 1)} * blocks_per_multiprocessor(Exact), 2048);
    // Vectors are not read where inner products are sums of numbers that are there.
    std::int64_t n = pass.updates > 0 ? pass.n : 0;
    for (int d = 0; d < pass.dots; ++d) {
        n = std::max(n, pass.dot[d].parts != nullptr ? pass.dot[d].count : pass.n);
    }
    const auto blocks = static_cast<unsigned>(std::clamp<std::int64_t>((n + tile - 1) / tile, 1, full));
    launch_early("run_pass", pass_kernel<T, Updates, Dots, Exact>, dim3(blocks), threads, stream_of(context), pass,
                 place);
}

/// Calls f with the least numbers of updates and inner products that kernels are compiled for and that suffice, and
/// whether sums are exact.
template <class F>
void with_sizes(int updates, int dots, bool exact, const F& f)
{
    const auto with_sums = [&](auto u, auto d) {
        if (exact) {
            f(u, d, std::true_type());
        } else {
            f(u, d, std::false_type());
        }
    };
    const auto with_dots = [&](auto u) {
        if (dots == 0) {
            f(u, std::integral_constant<int, 0>(), std::false_type());
        } else if (dots <= 2) {
            with_sums(u, std::integral_constant<int, 2>());
        } else {
            with_sums(u, std::integral_constant<int, most_pass_dots>());
        }
    };
    switch (updates) {
        case 0:
            with_dots(std::integral_constant<int, 0>());
            break;
        case 1:
            with_dots(std::integral_constant<int, 1>());
            break;
        case 2:
            with_dots(std::integral_constant<int, 2>());
            break;
        default:
            with_dots(std::integral_constant<int, most_pass_updates>());
    }
}

template <class T>
void run_pass(const Pass<T>& pass, const PassPlace& place, const Context& context)
{
    with_sizes(pass.updates, pass.dots, place.exact != nullptr, [&](auto updates, auto dots, auto exact) {
        launch<T, updates(), dots(), exact()>(pass, place, context);
    });
}

template <class T>
void load(bool exact)
{
    for (int updates = 0; updates <= most_pass_updates; ++updates) {
        for (const int dots : {0, 2, most_pass_dots}) {
            with_sizes(updates, dots, exact, [](auto u, auto d, auto e) {
                cudaFuncAttributes attributes{};
                check(cudaFuncGetAttributes(&attributes, pass_kernel<T, u(), d(), e()>), "cudaFuncGetAttributes");
            });
        }
    }
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, finish_kernel<T>), "cudaFuncGetAttributes");
    check(cudaFuncGetAttributes(&attributes, finish_sent_kernel), "cudaFuncGetAttributes");
    check(cudaFuncGetAttributes(&attributes, finish_exact_kernel), "cudaFuncGetAttributes");
}

template <class T>
void finish_pass(const Pass<T>& pass, const PassPlace& place, const Context& context)
{
    if (place.exact != nullptr && pass.dots > 0) {
        finish_exact_kernel<<<1, threads, 0, stream_of(context)>>>(places_of(pass), pass.dots, pass.always, place);
    } else if (place.sums == PassSums::sent) {
        finish_sent_kernel<<<1, threads, 0, stream_of(context)>>>(places_of(pass), pass.dots, pass.always, place);
    } else {
        finish_kernel<T><<<1, 1, 0, stream_of(context)>>>(places_of(pass), pass.dots, pass.always, place);
    }
    RMSP_CUDA_CHECK_LAUNCH("finish_pass");
}

void load_passes(bool exact, const Context& /*context*/)
{
    static cuda::LoadedKernels loaded[2];
    loaded[exact ? 1 : 0].need([&] {
#define RMSP_LOAD(T) load<T>(exact);
        RMSP_FOR_EACH_VALUE_TYPE(RMSP_LOAD)
#undef RMSP_LOAD
    });
}

}  // namespace
}  // namespace cuda::passes

RMSP_VALUE_ROW(Passes, cuda, .run_pass = cuda::passes::run_pass<T>, .finish_pass = cuda::passes::finish_pass<T>)
RMSP_ROW(PassLoading, cuda, .load_passes = cuda::passes::load_passes)

}  // namespace rmsp::kernels
