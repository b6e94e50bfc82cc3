#pragma once

#include <cstdint>

#include <rmsp/partition.hpp>

/// Choices that depend on the matrix, as data and pure functions: also of the other formats in slices of rows.
namespace rmsp::kernels {

/// Which rows go into slices of 32 with little padding, in a matrix that is worth it.
struct SlicedRows {
    double longest_over_mean = 8;
    double deviation_over_mean = 0.6;  ///< sorting leaves little of it
    double shortest_mean = 3;
    std::int64_t fewest_nonzeros =
        4'000'000;  ///< fewer stay in the cache from call to call, where fewer bytes gain little
    bool operator==(const SlicedRows&) const = default;
};
inline constexpr SlicedRows sliced_rows{};
/// Where a slice's format is worth a prediction, and a race if that is close. An empty row is padding.
inline constexpr SlicedRows weighed_sliced_rows{.shortest_mean = 1, .fewest_nonzeros = 0};

/// Whether "auto" takes sell.
constexpr bool prefers_sell(const RowStatistics& rows, const SlicedRows& limits = sliced_rows)
{
    return rows.nnz >= limits.fewest_nonzeros && rows.mean >= limits.shortest_mean &&
           rows.deviation <= limits.deviation_over_mean * rows.mean &&
           static_cast<double>(rows.longest_row) <= limits.longest_over_mean * rows.mean;
}

}  // namespace rmsp::kernels
