#pragma once

#include <cstdint>

#include <rmsp/partition.hpp>

/// Choices that depend on the matrix, as data and pure functions, so that the host can test what runs on the GPU.
namespace rmsp::kernels {

/// Which rows count as regular: one group of lanes a row then keeps every lane busy.
struct RegularRows {
    double longest_over_mean = 4;
    double deviation_over_mean = 0.25;
    double shortest_mean = 12;  ///< below, groups read less than a sector of each row at a time
    bool operator==(const RegularRows&) const = default;
};
inline constexpr RegularRows regular_rows{};

/// Whether "auto" takes csr-row-vector rather than csr-nnz-split.
constexpr bool prefers_row_vector(const RowStatistics& rows, const RegularRows& limits = regular_rows)
{
    return rows.mean >= limits.shortest_mean && rows.deviation <= limits.deviation_over_mean * rows.mean &&
           static_cast<double>(rows.longest_row) <= limits.longest_over_mean * rows.mean;
}

/// Nonzeros that each lane of csr-row-vector loads before it uses the first.
inline constexpr int row_vector_unroll = 4;

/// Lanes a row of csr-row-vector: the fewest, of 2 to 32, that take a row of mean length in one step.
constexpr int row_vector_lanes(double mean)
{
    int lanes = 2;
    while (lanes < 32 && mean > lanes * row_vector_unroll) {
        lanes *= 2;
    }
    return lanes;
}

}  // namespace rmsp::kernels
