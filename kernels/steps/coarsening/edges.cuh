#pragma once

#include <kernels/steps/coarsening/rows.cuh>

#include "matrix/strength.hpp"

namespace rmsp::kernels::cuda::coarsening {

/// The strong entries of a matrix.
struct Edges {
    RowPointers row_ptr;
    const std::int32_t* columns = nullptr;
    const std::uint8_t* strong = nullptr;

    /// f(column) for each; ends where f returns false.
    template <class F>
    __device__ __forceinline__ void from(std::int64_t row, const F& f) const
    {
        for (std::int64_t k = row_ptr[row]; k < row_ptr[row + 1]; ++k) {
            if (strong[k] == matrix::mark::strong && !f(columns[k])) {
                return;
            }
        }
    }
    /// The place of the first column that is not before `column`.
    __device__ __forceinline__ std::int64_t place(std::int64_t row, std::int64_t column) const
    {
        std::int64_t begin = row_ptr[row];
        std::int64_t end = row_ptr[row + 1];
        while (begin < end) {
            const std::int64_t middle = begin + (end - begin) / 2;
            if (columns[middle] < column) {
                begin = middle + 1;
            } else {
                end = middle;
            }
        }
        return begin;
    }
};

}  // namespace rmsp::kernels::cuda::coarsening
