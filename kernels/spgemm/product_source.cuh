#pragma once

#include <cstdint>

#include <kernels/spgemm/device.cuh>

/// What products are listed from, for repeated values.
namespace rmsp::kernels::spgemm {

/// A and B, whose columns may have any order, and C, whose columns rise.
struct ProductSource {
    Pattern a;
    Pattern b;
    const std::int64_t* row_ptr;  ///< of C
    const std::int32_t* col_idx;
    std::int64_t a_entries;
    std::int64_t b_entries;
    std::int64_t c_entries;
    std::int64_t products;
};

/// Where the row of B of entry `at` of A begins, and its entries.
__device__ __forceinline__ Extent row_of_b(const ProductSource& job, std::int64_t at)
{
    const std::int64_t k = __ldg(job.a.col_idx + at);
    const std::int64_t begin = job.b.row_ptr[k];
    return {begin, static_cast<std::int32_t>(job.b.row_ptr[k + 1] - begin)};
}

/// Place in a row of C of a column that is there.
__device__ __forceinline__ int place_of(const std::int32_t* columns, int count, std::int32_t column)
{
    int low = 0;
    for (int high = count - 1; low < high;) {
        const int middle = low + (high - low) / 2;
        if (__ldg(columns + middle) < column) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

}  // namespace rmsp::kernels::spgemm
