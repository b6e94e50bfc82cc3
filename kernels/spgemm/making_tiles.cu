#include <algorithm>
#include <limits>
#include <utility>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_primitives.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/spgemm/arrays.hpp>
#include <kernels/spgemm/making_tiles.cuh>

namespace rmsp::kernels::spgemm {
namespace {

/// weights[row], 0 behind the last, and the greatest of them. Several threads a row.
__global__ void __launch_bounds__(tile_threads)
    weigh_rows_kernel(const ProductSource job, std::int64_t* weights, Found* found)
{
    constexpr int lanes = 4;
    const std::int64_t row = std::int64_t{blockIdx.x} * (tile_threads / lanes) + threadIdx.x / lanes;
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    const std::int64_t begin = row < job.a.rows ? job.a.row_ptr[row] : 0;
    const std::int64_t end = row < job.a.rows ? job.a.row_ptr[row + 1] : 0;
    long long products = 0;
    // Of a row with so many entries the rest does not matter.
    for (std::int64_t i = begin + lane; i < end && end - begin <= most_weight; i += lanes) {
        products += row_of_b(job, i).count();
    }
    __syncwarp();
#pragma unroll
    for (int d = 1; d < lanes; d *= 2) {
        products += __shfl_xor_sync(whole_warp, products, d);
    }
    const long long weight = max(products, static_cast<long long>(end - begin));
    if (row <= job.a.rows && lane == 0) {
        weights[row] = weight;
    }
    const auto own = static_cast<int>(min(weight, static_cast<long long>(most_weight) + 1));
    const int of_warp = __reduce_max_sync(whole_warp, own);
    if (threadIdx.x % 32 == 0 && of_warp > 0) {
        atomicMax(&found->weight, of_warp);
    }
    if (lane == 0 && own > some_weight && own <= most_weight) {
        atomicAdd(&found->middle_products, static_cast<unsigned long long>(products));
    }
}

/// Rows that weigh more than `above` become heavy.
__global__ void __launch_bounds__(tile_threads)
    mark_heavy_kernel(const ProductSource job, std::int64_t above, std::int64_t* weights, Found* found)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * tile_threads + threadIdx.x;
    if (row < job.a.rows && weights[row] > above) {
        weights[row] = weight_of_heavy;
        atomicAdd(&found->heavy, 1);
        atomicAdd(&found->heavy_entries, static_cast<unsigned long long>(job.a.row_ptr[row + 1] - job.a.row_ptr[row]));
    }
}

/// first_rows[tile]: the first row whose weights before it reach the tile; first_rows[tiles]: all rows.
__global__ void __launch_bounds__(tile_threads)
    cut_tiles_kernel(const std::int64_t* __restrict__ before, std::int64_t rows, std::int64_t tiles,
                     std::int32_t* __restrict__ first_rows)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * tile_threads + threadIdx.x;
    if (row > rows) {
        return;
    }
    const std::int64_t from = row == 0 ? 0 : before[row - 1] / tile_weight + 1;
    const std::int64_t to = row == rows ? tiles : before[row] / tile_weight;
    for (std::int64_t tile = from; tile <= to; ++tile) {
        first_rows[tile] = static_cast<std::int32_t>(row);
    }
}

std::int64_t sum_bytes(std::size_t bytes) { return static_cast<std::int64_t>(bytes + sizeof(Found)); }

/// Room for what tiles need of each entry of A.
bool take_entries(Making& making, ProductTiles& found, ListJob& to)
{
    const std::int64_t entries = making.job.a_entries;
    found.products = try_array<std::uint16_t>(making.context, entries);
    found.of_b = try_array<std::int32_t>(making.context, entries);
    to.products = found.products.data();
    to.of_b = found.of_b.data();
    return found.products.size() > 0 && found.of_b.size() > 0 &&
           making.take(entries * static_cast<std::int64_t>(sizeof(std::uint16_t) + sizeof(std::int32_t)));
}

/// Parts of the heavy rows. \return none if there is no room, or if counts are too large
template <class T>
RowParts list_heavy(Making& making, const std::int64_t* before, HeavyCount count, ListJob& to, ProductTiles& found)
{
    const ProductSource& job = making.job;
    constexpr std::int64_t most_sums = std::numeric_limits<std::uint32_t>::max();
    // What they are cut with is gone before their products are listed.
    if (std::max(job.c_entries, job.products) >= most_sums || count.a_entries * 12 > making.most_bytes) {
        return {};
    }
    RowParts heavy = cut_heavy_rows(job, before, count.rows, count.a_entries, making.context);
    if (heavy.parts.size() == 0) {
        return {};
    }
    to.parts = heavy.parts.data();
    if (!list_tiles<T, true>(making, heavy.count, heavy.most, to, found)) {
        return {};
    }
    found.parts.lanes = virtual_warp(heavy.products, heavy.a_entries);
    return heavy;
}

/// Tiles where rows that weigh more than `above` are heavy. `weights`: of the rows.
template <class T>
ProductTiles cut_above(Making making, std::int64_t above, std::int64_t greatest, DeviceArray<std::int64_t> weights)
{
    const ProductSource& job = making.job;
    const cudaStream_t stream = making.stream();
    const std::int64_t rows = job.a.rows;
    ProductTiles found;
    ListJob to{};
    if (!take_entries(making, found, to)) {
        return {};
    }
    const bool any_heavy = greatest > above;
    if (any_heavy) {
        mark_heavy_kernel<<<blocks_for(rows, tile_threads), tile_threads, 0, stream>>>(job, above, weights.data(),
                                                                                       making.device_known);
        RMSP_CUDA_CHECK_LAUNCH("mark_heavy_kernel");
    }
    cuda::exclusive_sum(weights.data(), rows + 1, making.context);
    const std::int64_t weight = cuda::read(weights.data() + rows, stream);
    const Found known = making.read();
    to.before = any_heavy ? weights.data() : nullptr;
    RowParts heavy;
    if (any_heavy) {
        heavy = list_heavy<T>(making, weights.data(), {known.heavy, static_cast<std::int64_t>(known.heavy_entries)}, to,
                              found);
        if (heavy.parts.size() == 0) {
            return {};
        }
    }
    if (known.heavy < rows) {
        const std::int64_t cuts = weight / tile_weight + 1;
        const std::int64_t work_bytes = (cuts + 1) * std::int64_t{sizeof(std::int32_t) + sizeof(std::uint32_t)} +
                                        sum_bytes(cuda::exclusive_sum_bytes<std::uint32_t>(cuts + 1));
        auto first_rows = try_array<std::int32_t>(making.context, cuts + 1);
        if (first_rows.size() == 0 || !making.take(work_bytes)) {
            return {};
        }
        cut_tiles_kernel<<<blocks_for(rows + 1, tile_threads), tile_threads, 0, stream>>>(weights.data(), rows, cuts,
                                                                                          first_rows.data());
        RMSP_CUDA_CHECK_LAUNCH("cut_tiles_kernel");
        if (!any_heavy) {
            weights.reset();
        }
        to.first_rows = first_rows.data();
        if (!list_tiles<T, false>(making, cuts, std::min(greatest, above) + tile_weight, to, found)) {
            return {};
        }
        found.rows.lanes = virtual_warp(job.products - heavy.products, job.a_entries - heavy.a_entries);
    }
    return found;
}

}  // namespace

template <class T>
ProductTiles make_tiles(const ProductSource& job, std::int64_t most_bytes, const Context& context)
{
    const auto stream = static_cast<cudaStream_t>(context.stream);
    const DeviceLimits device = device_limits();
    const std::int64_t rows = job.a.rows;
    if (std::max(job.a_entries, job.b_entries) > std::numeric_limits<std::int32_t>::max()) {
        return {};
    }
    if ((rows + 1) * std::int64_t{sizeof(std::int64_t)} + sum_bytes(cuda::exclusive_sum_bytes<std::int64_t>(rows + 1)) >
        most_bytes) {
        return {};
    }
    auto device_known = try_array<Found>(context, 1);
    if (device_known.size() == 0) {
        return {};
    }
    const Making making{job, device_known.data(), most_bytes, device.shared_bytes, context};
    // Rows that turn out to take too much shared memory as a whole are cut after all.
    for (std::int64_t above = most_weight;; above = some_weight) {
        auto weights = try_array<std::int64_t>(context, rows + 1);
        if (weights.size() == 0) {
            return {};
        }
        RMSP_CUDA_CHECK(cudaMemsetAsync(device_known.data(), 0, sizeof(Found), stream));
        weigh_rows_kernel<<<blocks_for((rows + 1) * 4, tile_threads), tile_threads, 0, stream>>>(job, weights.data(),
                                                                                                 device_known.data());
        RMSP_CUDA_CHECK_LAUNCH("weigh_rows_kernel");
        const Found known = making.read();
        if (above == most_weight && known.weight > some_weight &&
            4 * static_cast<std::int64_t>(known.middle_products) <= job.products) {
            above = some_weight;
        }
        ProductTiles found = cut_above<T>(making, above, known.weight, std::move(weights));
        found.overlaps = device.overlaps;
        if (!found.empty() || above == some_weight || known.weight <= some_weight) {
            return found;
        }
    }
}

template <class T>
ProductTiles make_parts(const ProductSource& job, const std::int64_t* before, HeavyCount count, std::int64_t most_bytes,
                        const Context& context)
{
    const DeviceLimits device = device_limits();
    auto device_known = try_array<Found>(context, 1);
    if (device_known.size() == 0) {
        return {};
    }
    Making making{job, device_known.data(), most_bytes, device.shared_bytes, context};
    ProductTiles found;
    found.overlaps = device.overlaps;
    ListJob to{};
    if (!take_entries(making, found, to) || list_heavy<T>(making, before, count, to, found).parts.size() == 0) {
        return {};
    }
    return found;
}

#define RMSP_INSTANTIATE(T)                                                                                  \
    template ProductTiles make_tiles<T>(const ProductSource&, std::int64_t, const Context&);                 \
    template ProductTiles make_parts<T>(const ProductSource&, const std::int64_t*, HeavyCount, std::int64_t, \
                                        const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels::spgemm
