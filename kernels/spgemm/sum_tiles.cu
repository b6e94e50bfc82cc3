#include <cuda_pipeline_primitives.h>

#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/entry_sums.cuh>
#include <kernels/spgemm/product_tiles.cuh>

namespace rmsp::kernels::spgemm {
namespace {

constexpr int add_threads = 256;

__device__ __forceinline__ ProductTile load(const ProductTile* tile)
{
    union {
        uint4 raw[3];
        ProductTile tile;
    } both;
    static_assert(sizeof both == sizeof(ProductTile));
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        both.raw[i] = __ldg(reinterpret_cast<const uint4*>(tile) + i);
    }
    return both.tile;
}

/// A block for each tile. `Lanes` threads take an entry of A and its row of B. `places`: of parts, where their sums go
/// in `values`; null: tiles of rows.
template <int Threads, int Lanes, class T>
__global__ void __launch_bounds__(Threads)
    sum_tiles_kernel(const ProductTile* __restrict__ tiles, const std::uint16_t* __restrict__ numbers,
                     const std::uint16_t* __restrict__ first_products, const std::int32_t* __restrict__ of_b, T alpha,
                     const T* __restrict__ a_values, const T* __restrict__ b_values,
                     const std::uint32_t* __restrict__ places, T* __restrict__ values)
{
    constexpr int in_flight = 4;
    constexpr int groups = Threads / Lanes;
    let_next_begin();
    extern __shared__ __align__(16) unsigned char tile_memory[];
    const ProductTile tile = load(tiles + blockIdx.x);
    auto* const list = reinterpret_cast<std::uint16_t*>(tile_memory);
    T* const products = reinterpret_cast<T*>(tile_memory + tile.list_rows * 64);
    T* const sums = products + tile.products + 1;
    const std::uint16_t* const from = numbers + std::int64_t{tile.list} * 32;
    for (int i = static_cast<int>(threadIdx.x); i < tile.list_rows * 4; i += Threads) {
        __pipeline_memcpy_async(list + i * 8, from + i * 8, 16);
    }
    __pipeline_commit();
    const int lane = static_cast<int>(threadIdx.x) % Lanes;
    for (int e = static_cast<int>(threadIdx.x) / Lanes; e < tile.a_entries; e += in_flight * groups) {
        std::int32_t place[in_flight];
        int product[in_flight];
        int end[in_flight];
        T left[in_flight];
        T right[in_flight];
#pragma unroll
        for (int u = 0; u < in_flight; ++u) {
            const int entry = e + u * groups;
            const bool in = entry < tile.a_entries;
            const std::int64_t at = tile.a + entry;
            product[u] = in ? __ldg(first_products + at) + lane : 0;
            end[u] = !in ? 0 : entry + 1 < tile.a_entries ? __ldg(first_products + at + 1) : tile.products;
            place[u] = in ? __ldg(of_b + at) : 0;
            left[u] = in ? __ldg(a_values + at) : T{0};
        }
#pragma unroll
        for (int u = 0; u < in_flight; ++u) {
            right[u] = product[u] < end[u] ? __ldg(b_values + (place[u] + product[u])) : T{0};
        }
#pragma unroll
        for (int u = 0; u < in_flight; ++u) {
            if (product[u] < end[u]) {
                products[product[u]] = left[u] * right[u];
            }
            for (int p = product[u] + Lanes; p < end[u]; p += Lanes) {
                products[p] = left[u] * __ldg(b_values + (place[u] + p));
            }
        }
    }
    if (threadIdx.x == 0) {
        products[tile.products] = T{0};  // of lanes that have no more
    }
    __pipeline_wait_prior(0);
    __syncthreads();
    const int warp_lane = static_cast<int>(threadIdx.x) % 32;
    const int slices = slices_of_tile(tile.c_entries, tile.long_entries);
    const std::uint16_t* const order = list + rows_of_32(slices + 1) * 32;
    const std::uint16_t* const rows = order + rows_of_32(tile.c_entries) * 32 + warp_lane;
    for (int s = static_cast<int>(threadIdx.x) / 32; s < slices; s += Threads / 32) {
        const int end = list[s + 1];
        T sum{0};
#pragma unroll 4
        for (int row = list[s]; row < end; ++row) {
            sum += products[rows[row * 32]];
        }
        int entry = tile.long_entries + (s - tile.long_entries) * 32 + warp_lane;
        if (s < tile.long_entries) {
#pragma unroll
            for (int d = 16; d > 0; d /= 2) {
                sum += __shfl_xor_sync(whole_warp, sum, d);
            }
            entry = warp_lane == 0 ? s : tile.c_entries;
        }
        if (entry < tile.c_entries) {
            sums[order[entry]] = sum;
        }
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < tile.c_entries; i += Threads) {
        if (places != nullptr) {
            values[__ldg(places + tile.c + i)] = sums[i];
        } else {
            __stcs(values + tile.c + i, alpha * sums[i]);
        }
    }
    wait_for_previous();
}

/// `Lanes` threads add up what parts have of an entry of C. The sums are still being written when the kernel begins, so
/// that they are not declared to be read alone.
template <int Lanes, class T>
__global__ void __launch_bounds__(add_threads)
    add_parts_kernel(const std::uint32_t* __restrict__ entries, const std::uint32_t* __restrict__ begins,
                     std::int64_t count, const T* sums, T alpha, T* __restrict__ values)
{
    wait_for_previous_here();
    const std::int64_t i = std::int64_t{blockIdx.x} * (add_threads / Lanes) + threadIdx.x / Lanes;
    const std::uint32_t begin = i < count ? __ldg(begins + i) : 0;
    const std::uint32_t end = i < count ? __ldg(begins + i + 1) : 0;
    const T sum = sum_of_entry<T, Lanes>(begin, end, [&](std::uint32_t at) { return sums[at]; });
    if (i < count && threadIdx.x % Lanes == 0) {
        values[__ldg(entries + i)] = alpha * sum;
    }
}

template <class T>
using TileKernel = void (*)(const ProductTile*, const std::uint16_t*, const std::uint16_t*, const std::int32_t*, T,
                            const T*, const T*, const std::uint32_t*, T*);

template <int Threads, class T>
TileKernel<T> tile_kernel_of(int lanes)
{
    switch (lanes) {
        case 1:
            return sum_tiles_kernel<Threads, 1, T>;
        case 2:
            return sum_tiles_kernel<Threads, 2, T>;
        case 4:
            return sum_tiles_kernel<Threads, 4, T>;
        case 8:
            return sum_tiles_kernel<Threads, 8, T>;
        case 16:
            return sum_tiles_kernel<Threads, 16, T>;
        default:
            return sum_tiles_kernel<Threads, 32, T>;
    }
}

template <class T>
void sum_list(const TileList& list, const ProductTiles& all, T alpha, const T* a_values, const T* b_values,
              const std::uint32_t* places, T* values, Overlap overlap, cudaStream_t stream)
{
    const TileKernel<T> kernel = list.threads == 128   ? tile_kernel_of<128, T>(list.lanes)
                                 : list.threads == 256 ? tile_kernel_of<256, T>(list.lanes)
                                                       : tile_kernel_of<512, T>(list.lanes);
    launch_overlapping(kernel, static_cast<std::int64_t>(list.tiles.size()), list.threads,
                       static_cast<unsigned>(list.shared_bytes), overlap, stream, list.tiles.data(),
                       list.numbers.data(), all.products.data(), all.of_b.data(), alpha, a_values, b_values, places,
                       values);
}

}  // namespace

template <class T>
void sum_parts(ProductTiles& tiles, T alpha, const T* a_values, const T* b_values, Overlap& overlap,
               cudaStream_t stream)
{
    if (tiles.parts.tiles.size() > 0) {
        sum_list(tiles.parts, tiles, alpha, a_values, b_values, tiles.sums.places.data(),
                 reinterpret_cast<T*>(tiles.sums.sums.data()), overlap, stream);
        overlap.first = false;
    }
}

template <class T>
void add_parts(const ProductTiles& tiles, T alpha, T* values, Overlap overlap, cudaStream_t stream)
{
    const PartSums& sums = tiles.sums;
    const auto count = static_cast<std::int64_t>(sums.entries.size());
    if (count == 0) {
        return;
    }
    const std::int64_t mean = static_cast<std::int64_t>(sums.places.size()) / count;
    const int lanes = mean <= 4 ? 1 : mean <= 32 ? 8 : 32;
    const auto kernel = lanes == 1   ? add_parts_kernel<1, T>
                        : lanes == 8 ? add_parts_kernel<8, T>
                                     : add_parts_kernel<32, T>;
    launch_overlapping(kernel, blocks_for(count * lanes, add_threads), add_threads, 0, overlap, stream,
                       sums.entries.data(), sums.begins.data(), count, reinterpret_cast<const T*>(sums.sums.data()),
                       alpha, values);
}

template <class T>
void sum_tiles(ProductTiles& tiles, T alpha, const T* a_values, const T* b_values, T* values, cudaStream_t stream)
{
    Overlap overlap{tiles.overlaps, true};
    sum_parts(tiles, alpha, a_values, b_values, overlap, stream);
    if (tiles.rows.tiles.size() > 0) {
        sum_list(tiles.rows, tiles, alpha, a_values, b_values, static_cast<const std::uint32_t*>(nullptr), values,
                 overlap, stream);
        overlap.first = false;
    }
    add_parts(tiles, alpha, values, overlap, stream);
}

#define RMSP_INSTANTIATE(T)                                                                \
    template void sum_tiles(ProductTiles&, T, const T*, const T*, T*, cudaStream_t);       \
    template void sum_parts(ProductTiles&, T, const T*, const T*, Overlap&, cudaStream_t); \
    template void add_parts(const ProductTiles&, T, T*, Overlap, cudaStream_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels::spgemm
