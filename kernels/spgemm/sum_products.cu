#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/entry_sums.cuh>
#include <kernels/spgemm/products.cuh>

namespace rmsp::kernels::spgemm {
namespace {

constexpr int sum_threads = 256;

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

/// Asks for bytes, a multiple of 16 from a multiple of 16 on, to be in the L2 soon.
__device__ __forceinline__ void prefetch(const void* from, std::uint32_t bytes)
{
#if __CUDA_ARCH__ >= 900
    if (bytes > 0) {
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)), "r"(bytes));
    }
#endif
}

/// What a warp has of an entry that an earlier one began with.
template <class T>
struct Carry {
    std::uint32_t owner;
    T sum;
};

/// A block for each window, a warp for each of its bundles, so that neighbours read the same values of A and B. The
/// first products of the next step, or of the next bundle, are loaded while a step's values are on their way. The list
/// of the window `ahead` of this one is asked for, so that it is in the L2 when it is read.
template <class T>
__global__ void __launch_bounds__(sum_threads, 4)
    sum_products_kernel(const PackedProducts packed, std::int64_t entries, std::int64_t windows, int ahead, T alpha,
                        const T* __restrict__ a_values, const T* __restrict__ b_values, T* __restrict__ values)
{
    constexpr int warps = sum_threads / 32;
    constexpr int rounds = slice_bundles / warps;
    constexpr int slices = slices_a_bundle;
    __shared__ T sums[products_window];
    __shared__ Carry<T> carry[warps];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const ProductBundle* const bundles = packed.bundles + std::int64_t{blockIdx.x} * bundles_a_window;
    // Bundles become shorter: there and back again, each warp has about the same work.
    const auto bundle_of = [&](int round) { return round * warps + (round % 2 == 0 ? warp : warps - 1 - warp); };
    std::uint32_t word[slices];
    const auto load_words = [&](const ProductBundle& bundle, std::uint32_t row, int step) {
#pragma unroll
        for (int e = 0; e < slices; ++e) {
            word[e] = step < bundle.steps[e] ? __ldcs(packed.words + std::int64_t{row + e} * 32 + lane) : no_product;
        }
    };
    const int4 raw = __ldg(reinterpret_cast<const int4*>(packed.windows) + blockIdx.x);
    ProductBundle next = load(bundles + bundle_of(0));
    const ProductBundle beyond = load(bundles + slice_bundles);
    if (const std::int64_t of = std::int64_t{blockIdx.x} + ahead; threadIdx.x == 0 && of < windows) {
        const ProductBundle* const its = packed.bundles + of * bundles_a_window;
        const std::uint32_t begin = load(its).begin;
        const ProductBundle last = load(its + slice_bundles);
        prefetch(its, bundles_a_window * sizeof(ProductBundle));
        prefetch(packed.order + of * products_window, products_window * sizeof(std::uint16_t));
        prefetch(packed.words + std::int64_t{begin} * 32, (last.begin + last.pieces * rows_of_pieces(1) - begin) * 128);
    }
    const T* const a = a_values + raw.x;
    const T* const b = b_values + raw.y;
    const bool wide = raw.z == ProductWindow::wide;
    const int bits = wide ? 0 : raw.z;
    const unsigned mask = (1u << bits) - 1u;
    load_words(next, next.begin, 0);
    const auto left_of = [&](std::uint32_t both) { return __ldg(a + (both >> bits)); };
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
        const ProductBundle bundle = next;
        if (round + 1 < rounds) {
            next = load(bundles + bundle_of(round + 1));
        }
        const ushort4 order = __ldcs(reinterpret_cast<const ushort4*>(packed.order) +
                                     (std::int64_t{blockIdx.x} * slice_bundles + bundle_of(round)) * 32 + lane);
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
        const unsigned short places[slices] = {order.x, order.y, order.z, order.w};
#pragma unroll
        for (int e = 0; e < slices; ++e) {
            sums[places[e]] = sum[e];
        }
    }
    __syncthreads();
    if (beyond.pieces > 0) {
        // A warp adds up all pieces of an entry but those that an earlier one began with, so that the order is always
        // the same.
        const int planes = wide ? 2 : 1;
        const unsigned first = beyond.pieces * warp / warps;
        const unsigned end = beyond.pieces * (warp + 1) / warps;
        const auto slice_of = [&](unsigned i) {
            return packed.words + (std::int64_t{beyond.begin} + i * rows_of_pieces(planes)) * 32;
        };
        const std::uint32_t begun = 0 < first && first < end ? __ldg(slice_of(first - 1) + 31) : no_entry;
        if (lane == 0) {
            carry[warp] = {begun, T{0}};
        }
        __syncwarp();
        for (unsigned i = first; i < end; ++i) {
            const std::uint32_t* const place = slice_of(i) + lane;
            const std::uint32_t owner = __ldcs(place);
            std::uint32_t of_a[products_a_piece];
            std::uint32_t of_b[products_a_piece];
#pragma unroll
            for (int u = 0; u < products_a_piece; ++u) {
                of_a[u] = __ldcs(place + 32 * (1 + u * planes));
                of_b[u] = wide ? __ldcs(place + 32 * (2 + u * planes)) : of_a[u] & mask;
            }
            T sum{0};
#pragma unroll
            for (int u = 0; u < products_a_piece; ++u) {
                if (of_a[u] != no_product) {
                    sum += left_of(of_a[u]) * __ldg(b + of_b[u]);
                }
            }
            const T of_run = sum_of_run(sum, owner, lane);
            const std::uint32_t right = __shfl_down_sync(whole_warp, owner, 1);
            if (owner != no_entry && (lane == 31 || right != owner)) {
                (owner == begun ? carry[warp].sum : sums[owner]) += of_run;
            }
            __syncwarp();
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            for (const Carry<T>& c : carry) {
                if (c.owner != no_entry) {
                    sums[c.owner] += c.sum;
                }
            }
        }
        __syncthreads();
    }
    T* const to = values + std::int64_t{raw.w} * products_window;
    const std::int64_t here = entries - std::int64_t{raw.w} * products_window;
    for (int i = static_cast<int>(threadIdx.x); i < min(here, std::int64_t{products_window}); i += sum_threads) {
        __stcs(to + i, alpha * sums[i]);
    }
}

/// `Lanes` threads for an entry of C.
template <int Lanes, class T>
__global__ void __launch_bounds__(sum_threads)
    sum_entries_kernel(const std::uint32_t* __restrict__ offsets, const ProductRef* __restrict__ products,
                       std::int64_t entries, T alpha, const T* __restrict__ a_values, const T* __restrict__ b_values,
                       T* __restrict__ values)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * (sum_threads / Lanes) + threadIdx.x / Lanes;
    const std::uint32_t begin = i < entries ? __ldg(offsets + i) : 0;
    const std::uint32_t end = i < entries ? __ldg(offsets + i + 1) : 0;
    const T sum = sum_of_entry<T, Lanes>(begin, end, [&](std::uint32_t at) {
        const int2 of = __ldg(reinterpret_cast<const int2*>(products) + at);
        return __ldg(a_values + of.x) * __ldg(b_values + of.y);
    });
    if (i < entries && threadIdx.x % Lanes == 0) {
        values[i] = alpha * sum;
    }
}

}  // namespace

template <class T>
void sum_entries(const ListedProducts& listed, std::int64_t entries, int lanes, T alpha, const T* a_values,
                 const T* b_values, T* values, cudaStream_t stream)
{
    const auto kernel = lanes <= 1    ? sum_entries_kernel<1, T>
                        : lanes <= 2  ? sum_entries_kernel<2, T>
                        : lanes <= 4  ? sum_entries_kernel<4, T>
                        : lanes <= 8  ? sum_entries_kernel<8, T>
                        : lanes <= 16 ? sum_entries_kernel<16, T>
                                      : sum_entries_kernel<32, T>;
    kernel<<<blocks_for(entries * lanes, sum_threads), sum_threads, 0, stream>>>(
        listed.offsets.data(), listed.products.data(), entries, alpha, a_values, b_values, values);
    RMSP_CUDA_CHECK_LAUNCH("sum_entries_kernel");
}

template <class T>
void sum_products(const PackedProducts& packed, std::int64_t entries, int units, T alpha, const T* a_values,
                  const T* b_values, T* values, cudaStream_t stream)
{
    // Half of those that run at a time: farther ahead, lists leave the L2 again.
    const int ahead = 2 * units;
    const std::int64_t windows = product_windows(entries);
    sum_products_kernel<<<static_cast<unsigned>(windows), sum_threads, 0, stream>>>(packed, entries, windows, ahead,
                                                                                    alpha, a_values, b_values, values);
    RMSP_CUDA_CHECK_LAUNCH("sum_products_kernel");
}

#define RMSP_INSTANTIATE(T)                                                                                        \
    template void sum_products(const PackedProducts&, std::int64_t, int, T, const T*, const T*, T*, cudaStream_t); \
    template void sum_entries(const ListedProducts&, std::int64_t, int, T, const T*, const T*, T*, cudaStream_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels::spgemm
