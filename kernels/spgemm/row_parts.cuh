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
            previous = cut.bytes(word.index - first, begin - 1, before - __popc(word.mask));
        }
        for (int i = begin; i < end; ++i) {
            const Word word = load(source.words + i);
            const std::int64_t bytes = cut.bytes(word.index - first, i, before);
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

/// A thread's share of the columns of a row.
struct WordsBefore {
    int begin;  ///< of the share
    int end;
    int words;  ///< that begin before it
    int all;    ///< of the row
};
/// By a block, of rising columns. `sums` has a number for each warp.
template <int Threads>
__device__ __forceinline__ WordsBefore words_before(const std::int32_t* columns, std::int32_t entries, int* sums)
{
    const int share = (entries + Threads - 1) / Threads;
    WordsBefore own{};
    own.begin = min(static_cast<int>(threadIdx.x) * share, entries);
    own.end = min(own.begin + share, entries);
    int words = 0;
    std::int32_t previous = own.begin > 0 && own.begin < own.end ? columns[own.begin - 1] >> 5 : -1;
    for (int i = own.begin; i < own.end; ++i) {
        const std::int32_t word = columns[i] >> 5;
        words += word != previous ? 1 : 0;
        previous = word;
    }
    const int lane = static_cast<int>(threadIdx.x) % 32;
    own.words = block_sum_before<Threads>(words, sums) + sum_through<32>(words, lane) - words;
    for (int w = 0; w < Threads / 32; ++w) {
        own.all += sums[w];
    }
    return own;
}

/// As find_part() of words, of a row that is given by its columns: which words are there decides where parts begin, so
/// that they have to be counted up to each.
__device__ __forceinline__ void find_packed_part(const std::int32_t* columns, std::int32_t entries, std::int32_t first,
                                                 const PartCut& cut, int part, int parts, const WordsBefore& own,
                                                 PartBegin* begins)
{
    if (threadIdx.x < 2) {
        begins[threadIdx.x] = {own.all, entries};
    }
    __syncthreads();
    int words = own.words;
    for (int i = own.begin; i < own.end; ++i) {
        const std::int32_t word = columns[i] >> 5;
        const std::int32_t before = i > 0 ? columns[i - 1] >> 5 : -1;
        if (word == before) {
            continue;
        }
        const std::int64_t bytes = cut.bytes(word - first, words, i);
        ++words;
        for (int b = 0; b < 2; ++b) {
            // The first word that begins there or behind.
            const std::int64_t at = cut.begin(part + b, parts);
            if (at <= bytes) {
                atomicMin(&begins[b].word, words - 1);
                atomicMin(&begins[b].entry, i);
            }
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
        if (cut.bytes((columns[middle] >> 5) - first, 0, middle) < at) {
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
