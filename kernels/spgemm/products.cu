#include <limits>

#include <cub/block/block_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/numeric.cuh>

namespace rmsp::kernels::spgemm {
namespace {

constexpr int threads = 256;
constexpr std::uint32_t no_product = 0xffffffffu;
constexpr std::uint32_t no_entry = 0xffffffffu;
constexpr int bundles_a_window = products_window / (32 * slices_a_bundle);

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

/// Bits of a number: 0 takes none.
__device__ __forceinline__ unsigned bits_of(unsigned x)
{
    return 32u - static_cast<unsigned>(__clz(static_cast<int>(x)));
}

/// Greatest and least of the block, in all threads.
__device__ __forceinline__ unsigned block_max(unsigned x, unsigned* shared)
{
    x = __reduce_max_sync(whole_warp, x);
    __syncthreads();
    if (threadIdx.x == 0) {
        *shared = 0;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        atomicMax(shared, x);
    }
    __syncthreads();
    return *shared;
}

/// A block for each window: orders its entries, the ones with the most products first, and says how each bundle is packed;
/// rows[i]: what bundle i takes.
__global__ void __launch_bounds__(threads)
    plan_bundles_kernel(const std::uint32_t* __restrict__ offsets, const ProductRef* __restrict__ products,
                        std::int64_t entries, PackedProducts to, std::uint32_t* __restrict__ rows)
{
    constexpr int each = products_window / threads;
    constexpr int key_bits = 10;
    using Sort = cub::BlockRadixSort<std::uint32_t, threads, each, std::uint16_t>;
    __shared__ typename Sort::TempStorage storage;
    __shared__ std::uint16_t sorted[products_window];
    __shared__ unsigned most;
    const std::int64_t window = std::int64_t{blockIdx.x} * products_window;
    const auto here = static_cast<int>(min(entries - window, std::int64_t{products_window}));
    const auto count_of = [&](int at) { return at < here ? offsets[window + at + 1] - offsets[window + at] : 0u; };
    std::uint32_t key[each];
    std::uint16_t place[each];
#pragma unroll
    for (int i = 0; i < each; ++i) {
        const int at = static_cast<int>(threadIdx.x) * each + i;
        place[i] = static_cast<std::uint16_t>(at);
        key[i] = min(count_of(at), (1u << key_bits) - 1u);
    }
    Sort(storage).SortDescending(key, place, 0, key_bits);
#pragma unroll
    for (int i = 0; i < each; ++i) {
        sorted[static_cast<int>(threadIdx.x) * each + i] = place[i];
    }
    constexpr unsigned top = 0x7fffffffu;
    unsigned last_a = 0;
    unsigned last_b = 0;
    unsigned before_a = 0;  // top - least
    unsigned before_b = 0;
    for (std::uint32_t at = offsets[window] + threadIdx.x; at < offsets[window + here]; at += threads) {
        const ProductRef ref = products[at];
        last_a = max(last_a, static_cast<unsigned>(ref.a));
        last_b = max(last_b, static_cast<unsigned>(ref.b));
        before_a = max(before_a, top - static_cast<unsigned>(ref.a));
        before_b = max(before_b, top - static_cast<unsigned>(ref.b));
    }
    const unsigned first_a = top - block_max(before_a, &most);
    const unsigned first_b = top - block_max(before_b, &most);
    const unsigned a_range = block_max(last_a, &most) - first_a + 1;
    // One more than the greatest distance, so that no product has all bits set.
    const unsigned a_bits = bits_of(a_range);
    const unsigned b_bits = bits_of(block_max(last_b, &most) - first_b);
    const bool wide = a_bits + b_bits > 32;
    if (threadIdx.x == 0) {
        to.windows[blockIdx.x] =
            wide ? ProductWindow{0, 0, 0, ProductWindow::wide}
                 : ProductWindow{static_cast<std::int32_t>(first_a), static_cast<std::int32_t>(first_b),
                                 static_cast<std::int32_t>(a_range), static_cast<std::int32_t>(b_bits)};
    }
    const int planes = wide ? 2 : 1;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int i = static_cast<int>(threadIdx.x) / 32; i < bundles_a_window; i += threads / 32) {
        const std::int64_t bundle = std::int64_t{blockIdx.x} * bundles_a_window + i;
        int steps[slices_a_bundle];
        int all_steps = 0;
        int rest = 0;
#pragma unroll
        for (int e = 0; e < slices_a_bundle; ++e) {
            const std::uint16_t entry = sorted[(i * slices_a_bundle + e) * 32 + lane];
            to.order[(bundle * 32 + lane) * slices_a_bundle + e] = entry;
            const auto count = static_cast<int>(count_of(entry));
            // Where few entries have more than the others, what they have beyond is packed densely. Steps fall, and fit 16 bits; beyond the bits
            // of a key, the longest are in any order.
            constexpr int cost_of_rest = 2;
            constexpr int cost_of_any = 64;
            constexpr int most_steps = 65535;
            const int longest = static_cast<int>(__reduce_max_sync(whole_warp, static_cast<unsigned>(count)));
            int least = std::numeric_limits<int>::max();
            for (int l = 0; l < 32; l = l == 0 ? 1 : 2 * l) {
                const int most_here = min(l == 0 ? longest : __shfl_sync(whole_warp, count, l), most_steps);
                const int these = e > 0 ? min(most_here, steps[max(e - 1, 0)]) : most_here;
                const int beyond = __reduce_add_sync(whole_warp, max(count - these, 0));
                const int cost = these * 32 + cost_of_rest * beyond + (beyond > 0 ? cost_of_any : 0);
                if (cost < least) {
                    least = cost;
                    steps[e] = these;
                }
            }
            all_steps += steps[e];
            rest += __reduce_add_sync(whole_warp, max(count - steps[e], 0));
        }
        if (lane == 0) {
            ProductBundle found{0, static_cast<std::uint32_t>((rest + 31) / 32), {}};
#pragma unroll
            for (int e = 0; e < slices_a_bundle; ++e) {
                found.steps[e] = static_cast<std::uint16_t>(steps[e]);
            }
            to.bundles[bundle] = found;
            rows[bundle] = static_cast<std::uint32_t>(all_steps) * planes + found.rest * (planes + 1);
        }
    }
}

/// A warp for each bundle.
__global__ void __launch_bounds__(threads)
    pack_kernel(const std::uint32_t* __restrict__ offsets, const ProductRef* __restrict__ products,
                std::int64_t entries, const std::uint32_t* __restrict__ begins, std::int64_t count, PackedProducts to)
{
    const std::int64_t index = std::int64_t{blockIdx.x} * (threads / 32) + threadIdx.x / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (index >= count) {
        return;
    }
    ProductBundle bundle = to.bundles[index];
    bundle.begin = begins[index];
    __syncwarp();
    if (lane == 0) {
        to.bundles[index].begin = bundle.begin;
    }
    const ProductWindow window = to.windows[index / bundles_a_window];
    const int planes = window.how == ProductWindow::wide ? 2 : 1;
    // Product `product`, if there is one.
    const auto put = [&](std::uint32_t* place, bool there, std::uint32_t product) {
        const ProductRef ref = there ? products[product] : ProductRef{0, 0};
        if (planes == 2) {
            place[0] = there ? static_cast<std::uint32_t>(ref.a) : no_product;
            place[32] = static_cast<std::uint32_t>(ref.b);
        } else {
            place[0] = there ? static_cast<std::uint32_t>(ref.a - window.a) << window.how |
                                   static_cast<std::uint32_t>(ref.b - window.b)
                             : no_product;
        }
    };
    std::uint32_t from[slices_a_bundle];
    int own[slices_a_bundle];
#pragma unroll
    for (int e = 0; e < slices_a_bundle; ++e) {
        const std::int64_t entry =
            index / bundles_a_window * products_window + to.order[(index * 32 + lane) * slices_a_bundle + e];
        from[e] = entry < entries ? offsets[entry] : 0u;
        own[e] = entry < entries ? static_cast<int>(offsets[entry + 1] - from[e]) : 0;
    }
    std::uint32_t* row = to.words + std::int64_t{bundle.begin} * 32;
    for (int u = 0; u < bundle.steps[0]; ++u) {
#pragma unroll
        for (int e = 0; e < slices_a_bundle; ++e) {
            if (u < bundle.steps[e]) {
                put(row + lane, u < own[e], from[e] + u);
                row += 32 * planes;
            }
        }
    }
    if (bundle.rest > 0) {
        const auto place_of = [&](int at) { return row + at / 32 * 32 * (planes + 1) + at % 32; };
        int before = 0;
#pragma unroll
        for (int e = 0; e < slices_a_bundle; ++e) {
            const int rest = max(own[e] - bundle.steps[e], 0);
            const int through = before + sum_through<32>(rest, lane);
            for (int i = 0; i < rest; ++i) {
                std::uint32_t* const place = place_of(through - rest + i);
                put(place, true, from[e] + bundle.steps[e] + i);
                place[32 * planes] = static_cast<std::uint32_t>(e * 32 + lane);
            }
            before = __shfl_sync(whole_warp, through, 31);
        }
        if (before + lane < static_cast<int>(bundle.rest) * 32) {
            put(place_of(before + lane), false, 0);
            place_of(before + lane)[32 * planes] = no_entry;
        }
    }
}

__device__ __forceinline__ ProductBundle load(const ProductBundle* bundle)
{
    const uint4 raw = __ldg(reinterpret_cast<const uint4*>(bundle));
    return {raw.x,
            raw.y,
            {static_cast<std::uint16_t>(raw.z), static_cast<std::uint16_t>(raw.z >> 16),
             static_cast<std::uint16_t>(raw.w), static_cast<std::uint16_t>(raw.w >> 16)}};
}

/// Sums of neighbouring lanes with the same owner, in the last of them. The whole warp takes part.
template <class T>
__device__ __forceinline__ T sum_of_run(T value, std::uint32_t owner, int lane)
{
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const T left = __shfl_up_sync(whole_warp, value, d);
        const std::uint32_t its = __shfl_up_sync(whole_warp, owner, d);
        value += lane >= d && its == owner ? left : T{0};
    }
    return value;
}

/// A block for each window, a warp for each of its bundles, so that neighbours read the same values of A and B. The first products of the
/// next step, or of the next bundle, are loaded while a step's values are on their way.
template <class T>
__global__ void __launch_bounds__(threads, 4)
    sum_products_kernel(const PackedProducts packed, std::int64_t entries, T alpha, const T* __restrict__ a_values,
                        const T* __restrict__ b_values, T* __restrict__ values)
{
    constexpr int warps = threads / 32;
    constexpr int rounds = bundles_a_window / warps;
    constexpr int slices = slices_a_bundle;
    __shared__ T rests[warps][32 * slices];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    // Bundles become shorter: there and back again, each warp has about the same work.
    const auto bundle_of = [&](int round) {
        return std::int64_t{blockIdx.x} * bundles_a_window + round * warps + (round % 2 == 0 ? warp : warps - 1 - warp);
    };
    std::uint32_t word[slices];
    const auto load_words = [&](const ProductBundle& bundle, std::uint32_t row, int step) {
#pragma unroll
        for (int e = 0; e < slices; ++e) {
            word[e] = step < bundle.steps[e] ? __ldcs(packed.words + std::int64_t{row + e} * 32 + lane) : no_product;
        }
    };
    const int4 raw = __ldg(reinterpret_cast<const int4*>(packed.windows) + blockIdx.x);
    ProductBundle next = load(packed.bundles + bundle_of(0));
    const T* const a = a_values + raw.x;
    const T* const b = b_values + raw.y;
    const bool wide = raw.w == ProductWindow::wide;
    const int bits = wide ? 0 : raw.w;
    const unsigned mask = (1u << bits) - 1u;
    load_words(next, next.begin, 0);
    const auto left_of = [&](std::uint32_t both) { return __ldg(a + (both >> bits)); };
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
        const ProductBundle bundle = next;
        const std::int64_t index = bundle_of(round);
        if (round + 1 < rounds) {
            next = load(packed.bundles + bundle_of(round + 1));
        }
        const ushort4 order = __ldcs(reinterpret_cast<const ushort4*>(packed.order) + index * 32 + lane);
        std::uint32_t row = bundle.begin;
        T sum[slices] = {};
        const int steps = bundle.steps[0];
        for (int u = 0; u < steps; ++u) {
            T left[slices];
            T right[slices];
            if (wide) {
#pragma unroll
                for (int e = 0; e < slices; ++e) {
                    const std::uint32_t* const place = packed.words + std::int64_t{row} * 32 + lane;
                    const bool in = u < bundle.steps[e];
                    const std::uint32_t of_a = in ? place[0] : no_product;
                    left[e] = of_a != no_product ? __ldg(a_values + of_a) : T{0};
                    right[e] = of_a != no_product ? __ldg(b_values + place[32]) : T{0};
                    row += in ? 2 : 0;
                }
            } else {
#pragma unroll
                for (int e = 0; e < slices; ++e) {
                    left[e] = word[e] != no_product ? left_of(word[e]) : T{0};
                    right[e] = word[e] != no_product ? __ldg(b + (word[e] & mask)) : T{0};
                    row += u < bundle.steps[e] ? 1 : 0;
                }
                if (u + 1 < steps) {
                    load_words(bundle, row, u + 1);
                }
            }
            if (u + 1 == steps && round + 1 < rounds) {
                load_words(next, next.begin, 0);
            }
#pragma unroll
            for (int e = 0; e < slices; ++e) {
                sum[e] += left[e] * right[e];
            }
        }
        if (steps == 0 && round + 1 < rounds) {
            load_words(next, next.begin, 0);
        }
        if (bundle.rest > 0) {
#pragma unroll
            for (int e = 0; e < slices; ++e) {
                rests[warp][e * 32 + lane] = T{0};
            }
            __syncwarp();
            const std::uint32_t* place = packed.words + std::int64_t{row} * 32 + lane;
            const int planes = wide ? 2 : 1;
            constexpr unsigned in_flight = 2;
            for (unsigned r = 0; r < bundle.rest; r += in_flight) {
                std::uint32_t both[in_flight];
                std::uint32_t owner[in_flight];
                T product[in_flight];
#pragma unroll
                for (unsigned i = 0; i < in_flight; ++i, place += 32 * (planes + 1)) {
                    const bool in = r + i < bundle.rest;
                    both[i] = in ? __ldcs(place) : no_product;
                    owner[i] = in ? __ldcs(place + 32 * planes) : no_entry;
                }
#pragma unroll
                for (unsigned i = 0; i < in_flight; ++i) {
                    product[i] = T{0};
                    if (both[i] != no_product) {
                        const std::uint32_t* const second = place - 32 * (planes + 1) * (in_flight - i) + 32;
                        product[i] = wide ? __ldg(a_values + both[i]) * __ldg(b_values + *second)
                                          : left_of(both[i]) * __ldg(b + (both[i] & mask));
                    }
                }
#pragma unroll
                for (unsigned i = 0; i < in_flight; ++i) {
                    const T of_run = sum_of_run(product[i], owner[i], lane);
                    const std::uint32_t right = __shfl_down_sync(whole_warp, owner[i], 1);
                    if (owner[i] != no_entry && (lane == 31 || right != owner[i])) {
                        rests[warp][owner[i]] += of_run;
                    }
                    __syncwarp();
                }
            }
#pragma unroll
            for (int e = 0; e < slices; ++e) {
                sum[e] += rests[warp][e * 32 + lane];
            }
        }
        T* const to = values + index / bundles_a_window * products_window;
        const std::int64_t here = entries - index / bundles_a_window * products_window;
        const unsigned short places[slices] = {order.x, order.y, order.z, order.w};
#pragma unroll
        for (int e = 0; e < slices; ++e) {
            if (places[e] < here) {
                to[places[e]] = alpha * sum[e];
            }
        }
    }
}

}  // namespace

std::int64_t product_windows(std::int64_t entries) { return (entries + products_window - 1) / products_window; }
std::int64_t product_bundles(std::int64_t entries) { return product_windows(entries) * bundles_a_window; }

std::size_t scan_bytes(std::int64_t n)
{
    std::size_t bytes = 0;
    auto* const none = static_cast<std::uint32_t*>(nullptr);
    RMSP_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(nullptr, bytes, none, none, n));
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

void plan_bundles(const std::uint32_t* offsets, const ProductRef* products, std::int64_t entries,
                  const PackedProducts& packed, std::uint32_t* begins, void* work, std::size_t work_bytes,
                  cudaStream_t stream)
{
    const std::int64_t bundles = product_bundles(entries);
    RMSP_CUDA_CHECK(cudaMemsetAsync(begins + bundles, 0, sizeof(std::uint32_t), stream));
    plan_bundles_kernel<<<static_cast<unsigned>(product_windows(entries)), threads, 0, stream>>>(
        offsets, products, entries, packed, begins);
    RMSP_CUDA_CHECK_LAUNCH("plan_bundles_kernel");
    RMSP_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(work, work_bytes, begins, begins, bundles + 1, stream));
}

void pack_products(const std::uint32_t* offsets, const ProductRef* products, std::int64_t entries,
                   const std::uint32_t* begins, const PackedProducts& packed, cudaStream_t stream)
{
    const std::int64_t bundles = product_bundles(entries);
    pack_kernel<<<blocks_for(bundles * 32), threads, 0, stream>>>(offsets, products, entries, begins, bundles, packed);
    RMSP_CUDA_CHECK_LAUNCH("pack_kernel");
}

template <class T>
void sum_products(const PackedProducts& packed, std::int64_t entries, T alpha, const T* a_values, const T* b_values,
                  T* values, cudaStream_t stream)
{
    const auto windows = static_cast<unsigned>(product_windows(entries));
    sum_products_kernel<<<windows, threads, 0, stream>>>(packed, entries, alpha, a_values, b_values, values);
    RMSP_CUDA_CHECK_LAUNCH("sum_products_kernel");
}

template <class T>
void fill_ones(T* to, std::int64_t n, cudaStream_t stream)
{
    ones_kernel<<<blocks_for(n), threads, 0, stream>>>(to, n);
    RMSP_CUDA_CHECK_LAUNCH("ones_kernel");
}

#define RMSP_INSTANTIATE(T)                                                                                   \
    template void begin_products(const T*, std::int64_t, std::uint32_t*, void*, std::size_t, cudaStream_t);   \
    template void sum_products(const PackedProducts&, std::int64_t, T, const T*, const T*, T*, cudaStream_t); \
    template void fill_ones(T*, std::int64_t, cudaStream_t);
RMSP_INSTANTIATE(float)
RMSP_INSTANTIATE(double)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::kernels::spgemm
