#include <bit>
#include <utility>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_primitives.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/spgemm/arrays.hpp>
#include <kernels/spgemm/making_tiles.cuh>

namespace rmsp::kernels::spgemm {
namespace {

/// Lists the heavy rows, and how many entries of A each has.
__global__ void __launch_bounds__(tile_threads)
    list_heavy_kernel(const ProductSource job, const std::int64_t* __restrict__ before, unsigned* used,
                      std::int32_t* __restrict__ rows, std::int64_t* __restrict__ entries)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * tile_threads + threadIdx.x;
    if (row < job.a.rows && before[row + 1] - before[row] == weight_of_heavy) {
        const unsigned at = atomicAdd(used, 1u);
        rows[at] = static_cast<std::int32_t>(row);
        entries[at] = job.a.row_ptr[row + 1] - job.a.row_ptr[row];
    }
}

/// Entries of A of the heavy rows, one behind the other.
struct HeavyRows {
    const std::int32_t* rows;
    const std::int64_t* begins;  ///< of each row's entries, and where the last ends
    std::int64_t count;
    /// Number of the row that has entry i.
    __device__ std::int64_t row_of(std::int64_t i) const
    {
        std::int64_t low = 0;
        for (std::int64_t end = count; low + 1 < end;) {
            const std::int64_t middle = low + (end - low) / 2;
            (begins[middle] <= i ? low : end) = middle;
        }
        return low;
    }
};

/// weights[i]: of entry i the products, at least 1; 0 behind the last. And the greatest of them.
__global__ void __launch_bounds__(tile_threads)
    weigh_entries_kernel(const ProductSource job, const HeavyRows heavy, std::int64_t n,
                         std::int64_t* __restrict__ weights, unsigned long long* most)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * tile_threads + threadIdx.x;
    if (i > n) {
        return;
    }
    std::int64_t weight = 0;
    if (i < n) {
        const std::int64_t row = heavy.row_of(i);
        const std::int64_t at = job.a.row_ptr[heavy.rows[row]] + i - heavy.begins[row];
        weight = max(static_cast<std::int64_t>(row_of_b(job, at).count()), std::int64_t{1});
        if (static_cast<unsigned long long>(weight) > *most) {
            atomicMax(most, static_cast<unsigned long long>(weight));
        }
    }
    weights[i] = weight;
}

/// begun[i]: whether a part begins with entry i; 0 behind the last.
__global__ void __launch_bounds__(tile_threads)
    begin_parts_kernel(const HeavyRows heavy, const std::int64_t* __restrict__ before, std::int64_t n,
                       std::uint32_t* __restrict__ begun, std::int64_t part_weight)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * tile_threads + threadIdx.x;
    if (i > n) {
        return;
    }
    // Counted from the begin of the row, so that where it is cut depends on nothing else.
    const auto part_of = [&](std::int64_t at, std::int64_t first) {
        return (before[at] - before[first]) / part_weight;
    };
    bool begins = false;
    if (i < n) {
        const std::int64_t first = heavy.begins[heavy.row_of(i)];
        begins = i == first || part_of(i, first) != part_of(i - 1, first);
    }
    begun[i] = begins ? 1u : 0u;
}

/// `number`: how many parts begin before each entry.
__global__ void __launch_bounds__(tile_threads)
    list_parts_kernel(const ProductSource job, const HeavyRows heavy, const std::uint32_t* __restrict__ number,
                      std::int64_t n, RowPart* __restrict__ parts)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * tile_threads + threadIdx.x;
    if (i == n) {
        parts[number[n]] = {0, 0, static_cast<std::int32_t>(n)};
    } else if (i < n && number[i + 1] != number[i]) {
        const std::int64_t row = heavy.row_of(i);
        parts[number[i]] = {job.a.row_ptr[heavy.rows[row]] + i - heavy.begins[row], heavy.rows[row],
                            static_cast<std::int32_t>(i)};
    }
}

__global__ void __launch_bounds__(tile_threads) count_up_kernel(std::uint32_t* to, std::int64_t n)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * tile_threads + threadIdx.x;
    if (i < n) {
        to[i] = static_cast<std::uint32_t>(i);
    }
}

/// places[order[i]] = i; first[i]: whether i is the first of its entry; 0 behind the last.
__global__ void __launch_bounds__(tile_threads)
    place_sums_kernel(const std::uint32_t* __restrict__ entries, const std::uint32_t* __restrict__ order,
                      std::int64_t n, std::uint32_t* __restrict__ places, std::uint32_t* __restrict__ first)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * tile_threads + threadIdx.x;
    if (i > n) {
        return;
    }
    first[i] = i < n && (i == 0 || entries[i] != entries[i - 1]) ? 1u : 0u;
    if (i < n) {
        places[order[i]] = static_cast<std::uint32_t>(i);
    }
}

/// `number`: how many entries begin before each sum.
__global__ void __launch_bounds__(tile_threads)
    list_entries_kernel(const std::uint32_t* __restrict__ sorted, const std::uint32_t* __restrict__ number,
                        std::int64_t n, std::uint32_t* __restrict__ entries, std::uint32_t* __restrict__ begins)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * tile_threads + threadIdx.x;
    if (i == n) {
        begins[number[n]] = static_cast<std::uint32_t>(n);
    } else if (i < n && number[i + 1] != number[i]) {
        entries[number[i]] = sorted[i];
        begins[number[i]] = static_cast<std::uint32_t>(i);
    }
}

}  // namespace

RowParts cut_heavy_rows(const ProductSource& job, const std::int64_t* before, std::int64_t rows, std::int64_t a_entries,
                        const Context& context)
{
    const auto stream = static_cast<cudaStream_t>(context.stream);
    const auto list = try_array<std::int32_t>(context, rows);
    const auto begins = try_array<std::int64_t>(context, rows + 1);
    const auto weights = try_array<std::int64_t>(context, a_entries + 1);
    const auto numbers = try_array<std::uint32_t>(context, a_entries + 1);
    const auto counters = try_array<unsigned long long>(context, 2);  // listed rows, the greatest weight
    if (list.size() == 0 || begins.size() == 0 || weights.size() == 0 || numbers.size() == 0 || counters.size() == 0) {
        return {};
    }
    RMSP_CUDA_CHECK(cudaMemsetAsync(counters.data(), 0, 2 * sizeof(unsigned long long), stream));
    RMSP_CUDA_CHECK(cudaMemsetAsync(begins.data() + rows, 0, sizeof(std::int64_t), stream));
    list_heavy_kernel<<<blocks_for(job.a.rows, tile_threads), tile_threads, 0, stream>>>(
        job, before, reinterpret_cast<unsigned*>(counters.data()), list.data(), begins.data());
    RMSP_CUDA_CHECK_LAUNCH("list_heavy_kernel");
    cuda::exclusive_sum(begins.data(), rows + 1, context);
    const HeavyRows heavy{list.data(), begins.data(), rows};
    const unsigned blocks = blocks_for(a_entries + 1, tile_threads);
    weigh_entries_kernel<<<blocks, tile_threads, 0, stream>>>(job, heavy, a_entries, weights.data(),
                                                              counters.data() + 1);
    RMSP_CUDA_CHECK_LAUNCH("weigh_entries_kernel");
    cuda::exclusive_sum(weights.data(), a_entries + 1, context);
    RowParts found;
    found.a_entries = a_entries;
    found.products = cuda::read(weights.data() + a_entries, stream);
    const std::int64_t part_weight = weight_of_parts(found.products, context.compute_units);
    begin_parts_kernel<<<blocks, tile_threads, 0, stream>>>(heavy, weights.data(), a_entries, numbers.data(),
                                                            part_weight);
    RMSP_CUDA_CHECK_LAUNCH("begin_parts_kernel");
    cuda::exclusive_sum(numbers.data(), a_entries + 1, context);
    found.most = part_weight + static_cast<std::int64_t>(cuda::read(counters.data() + 1, stream));
    found.count = cuda::read(numbers.data() + a_entries, stream);
    found.parts = try_array<RowPart>(context, found.count + 1);
    if (found.parts.size() == 0) {
        return {};
    }
    list_parts_kernel<<<blocks, tile_threads, 0, stream>>>(job, heavy, numbers.data(), a_entries, found.parts.data());
    RMSP_CUDA_CHECK_LAUNCH("list_parts_kernel");
    RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));  // arrays of this function are read until then
    return found;
}

PartSums order_sums(DeviceArray<std::uint32_t> entries, std::int64_t c_entries, std::int64_t value_bytes,
                    const Context& context)
{
    const auto stream = static_cast<cudaStream_t>(context.stream);
    const auto n = static_cast<std::int64_t>(entries.size());
    const auto sorted = try_array<std::uint32_t>(context, n);
    const auto order = try_array<std::uint32_t>(context, n);
    const auto numbers = try_array<std::uint32_t>(context, n + 1);
    PartSums found;
    found.places = try_array<std::uint32_t>(context, n);
    found.sums = try_array<std::byte>(context, n * value_bytes);
    if (sorted.size() == 0 || order.size() == 0 || numbers.size() == 0 || found.places.size() == 0 ||
        found.sums.size() == 0) {
        return {};
    }
    const unsigned blocks = blocks_for(n + 1, tile_threads);
    count_up_kernel<<<blocks, tile_threads, 0, stream>>>(numbers.data(), n);
    RMSP_CUDA_CHECK_LAUNCH("count_up_kernel");
    cuda::sort_pairs(entries.data(), sorted.data(), numbers.data(), order.data(), n,
                     std::bit_width(static_cast<std::uint64_t>(c_entries)), context);
    place_sums_kernel<<<blocks, tile_threads, 0, stream>>>(sorted.data(), order.data(), n, found.places.data(),
                                                           numbers.data());
    RMSP_CUDA_CHECK_LAUNCH("place_sums_kernel");
    cuda::exclusive_sum(numbers.data(), n + 1, context);
    const std::int64_t count = cuda::read(numbers.data() + n, stream);
    found.entries = try_array<std::uint32_t>(context, count);
    found.begins = try_array<std::uint32_t>(context, count + 1);
    if (found.entries.size() == 0 || found.begins.size() == 0) {
        return {};
    }
    list_entries_kernel<<<blocks, tile_threads, 0, stream>>>(sorted.data(), numbers.data(), n, found.entries.data(),
                                                             found.begins.data());
    RMSP_CUDA_CHECK_LAUNCH("list_entries_kernel");
    RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));  // arrays of this function are read until then
    return found;
}

}  // namespace rmsp::kernels::spgemm
