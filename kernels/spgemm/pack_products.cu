#include <algorithm>

#include <cub/block/block_radix_sort.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_primitives.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/spgemm/arrays.hpp>
#include <kernels/spgemm/products.cuh>
#include <kernels/spgemm/sort.cuh>

namespace rmsp::kernels::spgemm {
namespace {

constexpr int pack_threads = 256;

constexpr unsigned pieces_beyond(unsigned products, unsigned most)
{
    return products <= most ? 0 : (products - most + products_a_piece - 1) / products_a_piece;
}

unsigned blocks_for(std::int64_t work) { return static_cast<unsigned>((work + pack_threads - 1) / pack_threads); }

template <class T>
__global__ void __launch_bounds__(pack_threads) ones_kernel(T* __restrict__ to, std::int64_t n)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * pack_threads + threadIdx.x;
    if (i < n) {
        to[i] = T{1};
    }
}

template <class T>
__global__ void __launch_bounds__(pack_threads)
    round_kernel(const T* __restrict__ counts, std::int64_t n, std::uint32_t* __restrict__ to)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * pack_threads + threadIdx.x;
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

constexpr int weight_bits = 4;

/// A block for each window: how much it has beyond slices, in a few classes, so that most windows stay beside their
/// neighbours, and its number.
__global__ void __launch_bounds__(pack_threads)
    weigh_windows_kernel(const std::uint32_t* __restrict__ offsets, std::int64_t entries, std::uint32_t* weights,
                         std::uint32_t* numbers)
{
    constexpr unsigned a_class = pack_threads;  // pieces: one for each thread
    __shared__ unsigned all_pieces;
    if (threadIdx.x == 0) {
        all_pieces = 0;
    }
    __syncthreads();
    const std::int64_t window = std::int64_t{blockIdx.x} * products_window;
    const std::int64_t end = min(entries, window + products_window);
    const unsigned most = most_in_slice(offsets[end] - offsets[window], end - window);
    unsigned pieces = 0;
    for (std::int64_t entry = window + threadIdx.x; entry < end; entry += pack_threads) {
        pieces += pieces_beyond(offsets[entry + 1] - offsets[entry], most);
    }
    pieces = __reduce_add_sync(whole_warp, pieces);
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&all_pieces, pieces);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        weights[blockIdx.x] = min(all_pieces / a_class, (1u << weight_bits) - 1u);
        numbers[blockIdx.x] = blockIdx.x;
    }
}

/// A block for each window, in the order of `numbers`: orders its entries, the ones with the most products first, and
/// says how each bundle is packed; rows[i]: what bundle i takes.
__global__ void __launch_bounds__(pack_threads)
    plan_bundles_kernel(const std::uint32_t* __restrict__ offsets, const ProductRef* __restrict__ products,
                        std::int64_t entries, const std::uint32_t* __restrict__ numbers, PackedProducts to,
                        std::uint32_t* __restrict__ rows)
{
    constexpr int each = products_window / pack_threads;
    constexpr int key_bits = 5;  // of most_in_slice()
    using Sort = cub::BlockRadixSort<std::uint32_t, pack_threads, each, std::uint16_t>;
    __shared__ typename Sort::TempStorage storage;
    __shared__ std::uint16_t sorted[products_window];
    __shared__ unsigned greatest;
    __shared__ unsigned all_pieces;
    const auto number = static_cast<std::int32_t>(numbers[blockIdx.x]);
    const std::int64_t window = std::int64_t{number} * products_window;
    const auto here = static_cast<int>(min(entries - window, std::int64_t{products_window}));
    const unsigned most = most_in_slice(offsets[window + here] - offsets[window], here);
    const auto count_of = [&](int at) { return at < here ? offsets[window + at + 1] - offsets[window + at] : 0u; };
    if (threadIdx.x == 0) {
        all_pieces = 0;
    }
    std::uint32_t key[each];
    std::uint16_t place[each];
    unsigned pieces = 0;
#pragma unroll
    for (int i = 0; i < each; ++i) {
        const int at = static_cast<int>(threadIdx.x) * each + i;
        const unsigned count = count_of(at);
        place[i] = static_cast<std::uint16_t>(at);
        key[i] = min(count, most);
        pieces += pieces_beyond(count, most);
    }
    Sort(storage).SortDescending(key, place, 0, key_bits);
#pragma unroll
    for (int i = 0; i < each; ++i) {
        sorted[static_cast<int>(threadIdx.x) * each + i] = place[i];
    }
    pieces = __reduce_add_sync(whole_warp, pieces);
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&all_pieces, pieces);
    }
    constexpr unsigned top = 0x7fffffffu;
    unsigned last_a = 0;
    unsigned last_b = 0;
    unsigned before_a = 0;  // top - least
    unsigned before_b = 0;
    for (std::uint32_t at = offsets[window] + threadIdx.x; at < offsets[window + here]; at += pack_threads) {
        const ProductRef ref = products[at];
        last_a = max(last_a, static_cast<unsigned>(ref.a));
        last_b = max(last_b, static_cast<unsigned>(ref.b));
        before_a = max(before_a, top - static_cast<unsigned>(ref.a));
        before_b = max(before_b, top - static_cast<unsigned>(ref.b));
    }
    const unsigned first_a = top - block_max(before_a, &greatest);
    const unsigned first_b = top - block_max(before_b, &greatest);
    // One more than the greatest distance, so that no product has all bits set.
    const unsigned a_bits = bits_of(block_max(last_a, &greatest) - first_a + 1);
    const unsigned b_bits = bits_of(block_max(last_b, &greatest) - first_b);
    const bool wide = a_bits + b_bits > 32;
    const int planes = wide ? 2 : 1;
    if (threadIdx.x == 0) {
        to.windows[blockIdx.x] =
            wide ? ProductWindow{0, 0, ProductWindow::wide, number}
                 : ProductWindow{static_cast<std::int32_t>(first_a), static_cast<std::int32_t>(first_b),
                                 static_cast<std::int32_t>(b_bits), number};
    }
    const std::int64_t first_bundle = std::int64_t{blockIdx.x} * bundles_a_window;
    if (threadIdx.x < bundles_a_window) {
        const int i = static_cast<int>(threadIdx.x);
        ProductBundle found{};
        int all_steps = 0;
        if (i < slice_bundles) {
#pragma unroll
            for (int e = 0; e < slices_a_bundle; ++e) {
                const unsigned longest = count_of(sorted[(i * slices_a_bundle + e) * 32]);
                found.steps[e] = static_cast<std::uint16_t>(min(longest, most));
                all_steps += found.steps[e];
            }
        } else {
            found.pieces = (all_pieces + 31) / 32;
        }
        to.bundles[first_bundle + i] = found;
        rows[first_bundle + i] = static_cast<std::uint32_t>(all_steps * planes) +
                                 found.pieces * static_cast<std::uint32_t>(rows_of_pieces(planes));
    }
    for (int i = static_cast<int>(threadIdx.x); i < products_window; i += pack_threads) {
        // Slice e of a bundle, lane l: side by side are the entries of a lane.
        const int bundle = i / (32 * slices_a_bundle);
        const int lane = i / slices_a_bundle % 32;
        const int e = i % slices_a_bundle;
        to.order[std::int64_t{blockIdx.x} * products_window + i] = sorted[(bundle * slices_a_bundle + e) * 32 + lane];
    }
}

/// A warp for each bundle.
__global__ void __launch_bounds__(pack_threads)
    pack_kernel(const std::uint32_t* __restrict__ offsets, const ProductRef* __restrict__ products,
                std::int64_t entries, const std::uint32_t* __restrict__ begins, std::int64_t count, PackedProducts to)
{
    const std::int64_t index = std::int64_t{blockIdx.x} * (pack_threads / 32) + threadIdx.x / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (index >= count) {
        return;
    }
    const std::int64_t place_of_window = index / bundles_a_window;
    const int in_window = static_cast<int>(index % bundles_a_window);
    ProductBundle bundle = to.bundles[index];
    bundle.begin = begins[index];
    __syncwarp();
    if (lane == 0) {
        to.bundles[index].begin = bundle.begin;
    }
    const ProductWindow from_where = to.windows[place_of_window];
    const std::int64_t first_entry = std::int64_t{from_where.number} * products_window;
    const int planes = from_where.how == ProductWindow::wide ? 2 : 1;
    // Product `product`, if there is one.
    const auto put = [&](std::uint32_t* place, bool there, std::uint32_t product) {
        const ProductRef ref = there ? products[product] : ProductRef{0, 0};
        if (planes == 2) {
            place[0] = there ? static_cast<std::uint32_t>(ref.a) : no_product;
            place[32] = static_cast<std::uint32_t>(ref.b);
        } else {
            place[0] = there ? static_cast<std::uint32_t>(ref.a - from_where.a) << from_where.how |
                                   static_cast<std::uint32_t>(ref.b - from_where.b)
                             : no_product;
        }
    };
    std::uint32_t* row = to.words + std::int64_t{bundle.begin} * 32;
    if (in_window < slice_bundles) {
        std::uint32_t from[slices_a_bundle];
        int own[slices_a_bundle];
#pragma unroll
        for (int e = 0; e < slices_a_bundle; ++e) {
            const std::int64_t entry =
                first_entry +
                to.order[place_of_window * products_window + (in_window * 32 + lane) * slices_a_bundle + e];
            from[e] = entry < entries ? offsets[entry] : 0u;
            own[e] = entry < entries ? static_cast<int>(offsets[entry + 1] - from[e]) : 0;
        }
        for (int u = 0; u < bundle.steps[0]; ++u) {
#pragma unroll
            for (int e = 0; e < slices_a_bundle; ++e) {
                if (u < bundle.steps[e]) {
                    put(row + lane, u < own[e], from[e] + u);
                    row += 32 * planes;
                }
            }
        }
        return;
    }
    const auto place_of = [&](std::uint32_t piece) {
        return row + std::int64_t{piece / 32} * (32 * rows_of_pieces(planes)) + piece % 32;
    };
    const auto put_piece = [&](std::uint32_t piece, std::uint32_t owner, std::uint32_t from,
                               std::uint32_t products_of) {
        std::uint32_t* const place = place_of(piece);
        *place = owner;
        for (int u = 0; u < products_a_piece; ++u) {
            put(place + 32 * (1 + u * planes), u < static_cast<int>(products_of), from + u);
        }
    };
    const auto here = static_cast<int>(min(entries - first_entry, std::int64_t{products_window}));
    const unsigned most = most_in_slice(offsets[first_entry + here] - offsets[first_entry], here);
    std::uint32_t before = 0;
    for (int at = 0; at < here && bundle.pieces > 0; at += 32) {
        const std::int64_t entry = first_entry + at + lane;
        const bool in = at + lane < here;
        std::uint32_t from = in ? offsets[entry] : 0u;
        const std::uint32_t end = in ? offsets[entry + 1] : 0u;
        const auto pieces = static_cast<int>(pieces_beyond(end - from, most));
        const int through = sum_through<32>(pieces, lane);
        from += most;
        for (int i = 0; i < pieces; ++i, from += products_a_piece) {
            put_piece(before + static_cast<std::uint32_t>(through - pieces + i), static_cast<std::uint32_t>(at + lane),
                      from, end - from);
        }
        before += static_cast<std::uint32_t>(__shfl_sync(whole_warp, through, 31));
    }
    if (before + lane < bundle.pieces * 32) {
        put_piece(before + lane, no_entry, 0, 0);
    }
}

}  // namespace

std::int64_t product_windows(std::int64_t entries) { return (entries + products_window - 1) / products_window; }
std::int64_t product_bundles(std::int64_t entries) { return product_windows(entries) * bundles_a_window; }

namespace {

/// Weights and numbers of the windows, then both in order; the work space of the sort follows.
std::size_t bytes_of_numbers(std::int64_t windows)
{
    return (static_cast<std::size_t>(windows) * 4 * sizeof(std::uint32_t) + 255) / 256 * 256;
}

}  // namespace

std::size_t begin_bytes(std::int64_t entries) { return cuda::exclusive_sum_bytes<std::uint32_t>(entries + 1); }

template <class T>
void begin_products(const T* counts, std::int64_t entries, std::uint32_t* offsets, void* work, std::size_t work_bytes,
                    cudaStream_t stream)
{
    round_kernel<<<blocks_for(entries + 1), pack_threads, 0, stream>>>(counts, entries, offsets);
    RMSP_CUDA_CHECK_LAUNCH("round_kernel");
    cuda::exclusive_sum(offsets, entries + 1, work, work_bytes, stream);
}

PackedList pack_products(const ListedProducts& listed, std::int64_t entries, std::int64_t most_bytes,
                         const Context& context)
{
    const auto stream = static_cast<cudaStream_t>(context.stream);
    const std::int64_t windows = product_windows(entries);
    const std::int64_t bundles = product_bundles(entries);
    const std::size_t before = bytes_of_numbers(windows);
    const std::size_t work_bytes = std::max(cuda::exclusive_sum_bytes<std::uint32_t>(bundles + 1),
                                            before + cuda::sort_pairs_descending_bytes(windows, weight_bits));
    const std::int64_t made_with =
        bundles * static_cast<std::int64_t>(sizeof(ProductBundle) + sizeof(std::uint32_t)) +
        windows * static_cast<std::int64_t>(sizeof(ProductWindow) + products_window * sizeof(std::uint16_t)) +
        static_cast<std::int64_t>(work_bytes);
    if (made_with > most_bytes) {
        return {};
    }
    const auto work = try_array<std::byte>(context, static_cast<std::int64_t>(work_bytes));
    const auto begins = try_array<std::uint32_t>(context, bundles + 1);  // rows of each bundle, and of all
    PackedList found{.words = {},
                     .windows = try_array<ProductWindow>(context, windows),
                     .bundles = try_array<ProductBundle>(context, bundles),
                     .order = try_array<std::uint16_t>(context, windows * products_window)};
    if (work.size() != work_bytes || begins.size() == 0 || found.windows.size() == 0 || found.bundles.size() == 0 ||
        found.order.size() == 0) {
        return {};
    }
    const std::uint32_t* const offsets = listed.offsets.data();
    const ProductRef* const products = listed.products.data();
    auto* const weights = reinterpret_cast<std::uint32_t*>(work.data());
    std::uint32_t* const numbers = weights + windows;
    std::uint32_t* const weights_in_order = numbers + windows;
    std::uint32_t* const numbers_in_order = weights_in_order + windows;
    weigh_windows_kernel<<<static_cast<unsigned>(windows), pack_threads, 0, stream>>>(offsets, entries, weights,
                                                                                      numbers);
    RMSP_CUDA_CHECK_LAUNCH("weigh_windows_kernel");
    cuda::sort_pairs_descending(weights, weights_in_order, numbers, numbers_in_order, windows, weight_bits,
                                work.data() + before, work_bytes - before, stream);
    RMSP_CUDA_CHECK(cudaMemsetAsync(begins.data() + bundles, 0, sizeof(std::uint32_t), stream));
    plan_bundles_kernel<<<static_cast<unsigned>(windows), pack_threads, 0, stream>>>(
        offsets, products, entries, numbers_in_order, found.packed(), begins.data());
    RMSP_CUDA_CHECK_LAUNCH("plan_bundles_kernel");
    cuda::exclusive_sum(begins.data(), bundles + 1, work.data(), work_bytes, stream);
    const std::int64_t words = std::int64_t{cuda::read(begins.data() + bundles, stream)} * 32;
    if (words * static_cast<std::int64_t>(sizeof(std::uint32_t)) > most_bytes - made_with) {
        return {};
    }
    found.words = try_array<std::uint32_t>(context, words);
    if (found.words.size() > 0) {
        pack_kernel<<<blocks_for(bundles * 32), pack_threads, 0, stream>>>(offsets, products, entries, begins.data(),
                                                                           bundles, found.packed());
        RMSP_CUDA_CHECK_LAUNCH("pack_kernel");
    }
    return found;
}

template <class T>
void fill_ones(T* to, std::int64_t n, cudaStream_t stream)
{
    ones_kernel<<<blocks_for(n), pack_threads, 0, stream>>>(to, n);
    RMSP_CUDA_CHECK_LAUNCH("ones_kernel");
}

#define RMSP_INSTANTIATE(T)                                                                                 \
    template void begin_products(const T*, std::int64_t, std::uint32_t*, void*, std::size_t, cudaStream_t); \
    template void fill_ones(T*, std::int64_t, cudaStream_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels::spgemm
