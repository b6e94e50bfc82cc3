#pragma once

#include <kernels/spgemm/device.cuh>

/// What the kernels of the symbolic phase share.
namespace rmsp::kernels::spgemm {

/// What a warp has left of the pool.
struct Slab {
    long long at = 0;
    long long left = 0;
};

/// Place for n words in the pool, the same for all lanes; -1 if there is none.
__device__ __forceinline__ long long take(const StructureJob& job, Slab& slab, long long n, int lane)
{
    if (slab.left < 0) {
        return -1;
    }
    if (n > slab.left) {
        constexpr long long short_row = 128;
        const long long size = n < short_row ? n * job.rows_a_slab : n;
        long long at = 0;
        if (lane == 0) {
            at = static_cast<long long>(atomicAdd(&job.counters->pool_used, static_cast<unsigned long long>(size)));
        }
        at = __shfl_sync(whole_warp, at, 0);
        if (at + size > job.pool_capacity) {
            job.counters->unstored = 1;
            slab.left = -1;
            return -1;
        }
        slab = {at, size};
    }
    const long long place = slab.at;
    slab.at += n;
    slab.left -= n;
    return place;
}

/// Where the columns of a row go in C, for each row of a group of twins.
struct Target {
    std::int32_t* to;
    std::int64_t entries;
    int group;
};

template <bool Write>
__device__ __forceinline__ bool is_stored(const StructureJob& job, std::int64_t row)
{
    return Write && job.pool != nullptr && job.stored[row].place() >= 0;
}

/// Rows of the classes hash: counted, with their words kept, or the columns of those that are not kept written.
void count_structure_hash(StructureJob job, StructureClass c, const std::int32_t* list, std::int64_t count,
                          Overlap overlap, cudaStream_t stream);
void write_structure_hash(StructureJob job, StructureClass c, const std::int32_t* list, std::int64_t count,
                          Overlap overlap, cudaStream_t stream);

}  // namespace rmsp::kernels::spgemm
