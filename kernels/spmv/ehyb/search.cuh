#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include <kernels/context.hpp>
#include <kernels/cuda_barrier.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/spmv/ehyb/pool.hpp>

/// A search through the graph of a matrix, level by level: device_pool.cuh alone includes it.
namespace rmsp::kernels::ehyb {
namespace {

constexpr int search_threads = 1024;
/// That look at one row together.
constexpr int search_lanes = 8;

/// What the blocks of a search share; zero before.
struct Search {
    unsigned arrived;     ///< at the barrier
    unsigned found[3];    ///< rows of a level: of this one, the next and the one before
    std::int32_t levels;  ///< of the last row that was reached
};

/// Rows that were reached are queued, so that a level takes as long as its rows do. Each is reached once, whoever comes
/// first, and has the same distance whatever the order is.
__global__ void __launch_bounds__(search_threads)
    search_kernel(Structure a, std::int32_t start, std::int32_t most_levels, std::int32_t* distance,
                  std::int32_t* queue, Search* search)
{
    GridBarrier barrier(&search->arrived);
    const std::int64_t threads = std::int64_t{gridDim.x} * search_threads;
    const std::int64_t own = std::int64_t{blockIdx.x} * search_threads + threadIdx.x;
    for (std::int64_t row = own; row < a.rows; row += threads) {
        distance[row] = row == start ? 0 : -1;
    }
    if (own == 0) {
        queue[0] = start;
        search->found[0] = 1;
    }
    barrier.wait();
    std::int64_t begin = 0;
    std::int32_t level = 0;
    for (; level < most_levels; ++level) {
        const unsigned count = load_shared(search->found + level % 3);
        unsigned* const next = search->found + (level + 1) % 3;
        if (own == 0) {
            store_shared(search->found + (level + 2) % 3, 0u);  // all have read it before the last barrier
        }
        for (std::int64_t i = own / search_lanes; i < count; i += threads / search_lanes) {
            const std::int64_t row = load_shared(queue + begin + i);
            const std::int64_t end = a.first(row + 1);
            for (std::int64_t k = a.first(row) + own % search_lanes; k < end; k += search_lanes) {
                const std::int64_t other = a.row_of(a.col_idx[k]);
                if (other >= 0 && load_shared(distance + other) < 0 &&
                    atomicCAS(distance + other, -1, level + 1) == -1) {
                    const auto found = cooperative_groups::coalesced_threads();
                    unsigned first = 0;
                    if (found.thread_rank() == 0) {
                        first = atomicAdd(next, found.size());
                    }
                    first = found.shfl(first, 0) + found.thread_rank();
                    store_shared(queue + begin + count + first, static_cast<std::int32_t>(other));
                }
            }
        }
        barrier.wait();
        if (load_shared(next) == 0) {
            break;
        }
        begin += count;
    }
    if (own == 0) {
        search->levels = level;
    }
}

/// Queues a search of a graph that is not empty. \param queue  [a.rows]
inline void queue_search(const Structure& a, std::int64_t start, std::int32_t most_levels, std::int32_t* distance,
                         std::int32_t* queue, Search* search, const Context& context)
{
    const auto stream = static_cast<cudaStream_t>(context.stream);
    RMSP_CUDA_CHECK(cudaMemsetAsync(search, 0, sizeof(Search), stream));
    // A block a multiprocessor: more wait longer at the barrier.
    constexpr std::int64_t a_block = search_threads / search_lanes;
    const auto grid = static_cast<unsigned>(
        std::min<std::int64_t>((a.rows + a_block - 1) / a_block, std::max(context.compute_units, 1)));
    Structure structure = a;
    auto first = static_cast<std::int32_t>(start);
    void* arguments[] = {&structure, &first, &most_levels, &distance, &queue, &search};
    // Cooperative: either all blocks run at once, which the barrier needs, or the launch fails.
    RMSP_CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(search_kernel), grid, search_threads,
                                                arguments, 0, stream));
}

}  // namespace
}  // namespace rmsp::kernels::ehyb
