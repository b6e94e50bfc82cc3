#include <ranges>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/launch_policy.hpp>
#include <kernels/spgemm/row_sample.cuh>

namespace rmsp::kernels::spgemm {
namespace {

constexpr int sample_threads = 256;

__global__ void __launch_bounds__(sample_threads)
    sample_kernel(const std::int32_t* __restrict__ list, std::int64_t count, std::int64_t stride,
                  std::int32_t* __restrict__ sampled)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * sample_threads + threadIdx.x;
    if (i < count) {
        sampled[i] = list[i * stride];
    }
}

__global__ void __launch_bounds__(sample_threads)
    sum_sample_kernel(const std::int32_t* __restrict__ sampled, std::int64_t count,
                      const __grid_constant__ StructureJob job)
{
    __shared__ long long sums[2][sample_threads / 32];
    const std::int64_t i = std::int64_t{blockIdx.x} * sample_threads + threadIdx.x;
    long long bound = 0;
    long long entries = 0;
    if (i < count) {
        const std::int32_t row = sampled[i];
        const RowBounds own = job.bounds[row];
        if (!is_spread(own, job.spread_above)) {
            bound = min(static_cast<long long>(own.words), static_cast<long long>(own.span_words()));
            entries = static_cast<long long>(job.row_nnz[row]) * job.groups[row];
        }
    }
    bound = cuda::block_sum<sample_threads>(bound, sums[0]);
    entries = cuda::block_sum<sample_threads>(entries, sums[1]);
    if (threadIdx.x == 0) {
        atomicAdd(reinterpret_cast<unsigned long long*>(&job.counters->sampled_bound),
                  static_cast<unsigned long long>(bound));
        atomicAdd(reinterpret_cast<unsigned long long*>(&job.counters->sampled_entries),
                  static_cast<unsigned long long>(entries));
    }
}

}  // namespace

bool count_sample(StructureJob job, const Counters& found, std::int64_t stride, const std::int32_t* list,
                  std::int32_t* sampled, bool overlaps, cudaStream_t stream)
{
    auto launches = plan_launches<StructureClass>(found.structure);
    std::erase_if(launches, [](const Launch<StructureClass>& one) { return is_few(one.as); });
    if (launches.empty()) {
        return false;
    }
    // Which of the sample are the first from place i of the list on.
    const auto place = [stride](std::int64_t i) { return (i + stride - 1) / stride; };
    const std::int64_t listed = launches.back().first + launches.back().rows;
    const std::int64_t begin = place(launches.front().first);
    const std::int64_t end = place(listed);
    if (end - begin < sample_policy.fewest_rows) {
        return false;
    }
    sample_kernel<<<blocks_for(end, sample_threads), sample_threads, 0, stream>>>(list, end, stride, sampled);
    RMSP_CUDA_CHECK_LAUNCH("sample_kernel");
    Overlap overlap{overlaps, true};
    for (const auto& launch : launches | std::views::reverse) {
        const std::int64_t from = place(launch.first);
        const std::int64_t rows = place(launch.first + launch.rows) - from;
        job.widest = widest_of(found, launch.as);
        if (rows > 0) {
            run_structure(job, launch.as, sampled + from, rows, overlap, stream);
            overlap.first = false;
        }
    }
    sum_sample_kernel<<<blocks_for(end - begin, sample_threads), sample_threads, 0, stream>>>(sampled + begin,
                                                                                              end - begin, job);
    RMSP_CUDA_CHECK_LAUNCH("sum_sample_kernel");
    return true;
}

}  // namespace rmsp::kernels::spgemm
