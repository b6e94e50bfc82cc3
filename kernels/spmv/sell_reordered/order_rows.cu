#include <algorithm>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/spmv/sell_reordered/reorder.hpp>
#include <kernels/spmv/sell_reordered/reorder_kernels.cuh>

namespace rmsp::kernels {

template <class T>
Ordering order_rows(const CsrShard<T>& shard, const Context& context, const ReorderTuning& tuning)
{
    Ordering ordering;
    if (shard.rows == 0) {
        return ordering;
    }
    const auto stream = static_cast<cudaStream_t>(context.stream);
    const auto rows = static_cast<std::size_t>(shard.rows);
    const Graph graph{
        shard.rows, {shard.row_ptr.data(), shard.row_ptr.type() == IndexType::i64}, shard.col_idx, shard.diagonal};
    ordering.row = DeviceArray<std::int32_t>(*context.memory, rows);
    ordering.place = DeviceArray<std::int32_t>(*context.memory, rows);
    const DeviceArray<Key> parent(*context.memory, rows);
    const DeviceArray<Key> weight(*context.memory, rows);
    const DeviceArray<Search> search(*context.memory, 1);
    RMSP_CUDA_CHECK(cudaMemsetAsync(ordering.place.data(), 0xff, rows * sizeof(std::int32_t), stream));
    RMSP_CUDA_CHECK(cudaMemsetAsync(parent.data(), 0xff, rows * sizeof(Key), stream));
    RMSP_CUDA_CHECK(cudaMemsetAsync(search.data(), 0, sizeof(Search), stream));
    const int units = std::max(context.compute_units, 1);
    const auto blocks = static_cast<unsigned>((shard.rows + reorder_threads - 1) / reorder_threads);
    const std::int64_t mean = shard.nnz / shard.rows;
    const auto weigh = mean <= 8 ? weigh_kernel<8> : mean <= 16 ? weigh_kernel<16> : weigh_kernel<32>;
    weigh<<<std::min(blocks, 2 * static_cast<unsigned>(units)), reorder_threads, 0, stream>>>(graph, weight.data(),
                                                                                              search.data());
    RMSP_CUDA_CHECK_LAUNCH("weigh_kernel");

    const auto kernel = mean <= 8 ? order_kernel<8> : mean <= 16 ? order_kernel<16> : order_kernel<32>;
    int per_unit = 0;
    RMSP_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_unit, kernel, reorder_threads, 0));
    // One warp for each row is more than there is to do.
    const auto grid = static_cast<unsigned>(
        std::min<std::int64_t>((shard.rows + warps - 1) / warps, std::int64_t{std::max(per_unit, 1)} * units));
    const DeviceArray<unsigned> block_totals(*context.memory, grid);
    Arrays arrays{graph,         ordering.row.data(), ordering.place.data(), weight.data(),
                  parent.data(), block_totals.data(), search.data()};
    ReorderTuning limits = tuning;
    void* arguments[] = {&arrays, &limits};
    // Cooperative: either all blocks run at once, which the barrier needs, or the launch fails.
    RMSP_CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), grid, reorder_threads, arguments,
                                                0, stream));
    count_twins_kernel<<<blocks, reorder_threads, 0, stream>>>(shard.rows, ordering.row.data(), weight.data(),
                                                               search.data());
    RMSP_CUDA_CHECK_LAUNCH("count_twins_kernel");
    const Search found = cuda::read(search.data(), stream);
    ordering.levels = found.levels;
    ordering.widest = found.widest;
    ordering.twins = found.twins;
    if (found.stopped != 0) {
        ordering.row.reset();
        ordering.place.reset();
    }
    return ordering;
}

#define RMSP_INSTANTIATE(T) template Ordering order_rows(const CsrShard<T>&, const Context&, const ReorderTuning&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels
