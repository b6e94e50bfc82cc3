#pragma once

#include <kernels/spgemm/numeric.cuh>

/// Where the parts of a row lie that several blocks take.
namespace rmsp::kernels::spgemm {

/// Where a part of a row begins: among its words, if it has any, and among its entries.
struct PartBegin {
    std::int32_t word;
    std::int32_t entry;
};

/// begins[0] and begins[1]: of parts `part` and part + 1 of a row that is given by words. All threads take part.
template <int Threads>
__device__ __forceinline__ void find_part(const RowSource& source, std::int32_t entries, std::int32_t first,
                                          const PartCut& cut, int part, int parts, int* sums, PartBegin* begins)
{
    const int share = (source.count + Threads - 1) / Threads;
    const int begin = min(static_cast<int>(threadIdx.x) * share, source.count);
    const int end = min(begin + share, source.count);
    if (threadIdx.x < 2) {
        begins[threadIdx.x] = {source.count, entries};
    }
    int own = 0;
    for (int i = begin; i < end; ++i) {
        own += __popc(load(source.words + i).mask);
    }
    const int lane = static_cast<int>(threadIdx.x) % 32;
    int before = block_sum_before<Threads>(own, sums) + sum_through<32>(own, lane) - own;
    if (begin < end) {
        std::int64_t previous = -1;
        if (begin > 0) {
            const Word word = load(source.words + begin - 1);
            previous = cut.bytes(word.index - first, before - __popc(word.mask));
        }
        for (int i = begin; i < end; ++i) {
            const Word word = load(source.words + i);
            const std::int64_t bytes = cut.bytes(word.index - first, before);
            for (int b = 0; b < 2; ++b) {
                const std::int64_t at = cut.begin(part + b, parts);
                if (previous < at && at <= bytes) {
                    begins[b] = {i, before};
                }
            }
            before += __popc(word.mask);
            previous = bytes;
        }
    }
    __syncthreads();
}

/// Where a part begins of a row that is given by its columns, by one thread, for one part. The last part ends where the
/// row does.
__device__ __forceinline__ PartBegin find_part(const std::int32_t* columns, std::int32_t entries, std::int32_t first,
                                               const PartCut& cut, int part, int parts)
{
    if (part == parts) {
        return {0, entries};
    }
    const std::int64_t at = cut.begin(part, parts);
    std::int32_t low = 0;
    for (std::int32_t high = entries; low < high;) {
        const std::int32_t middle = low + (high - low) / 2;
        if (cut.bytes((columns[middle] >> 5) - first, middle) < at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    // A word belongs to one part.
    while (low > 0 && low < entries && columns[low - 1] >> 5 == columns[low] >> 5) {
        --low;
    }
    return {0, low};
}

}  // namespace rmsp::kernels::spgemm
