#pragma once

#include <cstdint>

#include <rmsp/partition.hpp>

/// Choices that depend on the matrix, as data and pure functions, so that the host can test what runs on the GPU.
namespace rmsp::kernels {

/// Which rows count as regular: one group of lanes a row then keeps every lane busy.
struct RegularRows {
    double longest_over_mean = 8;
    double deviation_over_mean = 0.6;
    double shortest_mean = 5;        ///< below, most lanes of a group have nothing to read
    std::int64_t fewest_rows = 256;  ///< fewer long rows leave most of the GPU idle
    bool operator==(const RegularRows&) const = default;
};
inline constexpr RegularRows regular_rows{};
/// Which are worth a prediction, and a race if that is close.
inline constexpr RegularRows weighed_regular_rows{.shortest_mean = 1};

/// Whether "auto" takes csr-row-vector rather than csr-nnz-split.
constexpr bool prefers_row_vector(const RowStatistics& rows, const RegularRows& limits = regular_rows)
{
    return rows.rows >= limits.fewest_rows && rows.mean >= limits.shortest_mean &&
           rows.deviation <= limits.deviation_over_mean * rows.mean &&
           static_cast<double>(rows.longest_row) <= limits.longest_over_mean * rows.mean;
}

/// Loads of columns and of values that each lane of csr-row-vector makes before it uses the first, or half of them.
inline constexpr int row_vector_unroll = 4;

/// Rows that csr-row-vector sums out of shared memory, which bulk copies fill: so many that the memory decides, so
/// short that those of a thread block fit, and of similar length, since there is room for the longest.
struct StagedRows {
    std::int64_t fewest_nonzeros = 4'000'000;
    std::int64_t longest_row = 32;
    double longest_over_mean = 2;
    bool operator==(const StagedRows&) const = default;
};
inline constexpr StagedRows staged_rows{};

constexpr bool stages_rows(const RowStatistics& rows, const StagedRows& limits = staged_rows)
{
    return rows.nnz >= limits.fewest_nonzeros && rows.longest_row <= limits.longest_row &&
           static_cast<double>(rows.longest_row) <= limits.longest_over_mean * rows.mean;
}

/// Neighbouring entries of a load: pairs of floats and of their columns are 8 bytes each.
template <class T>
inline constexpr int row_vector_width = sizeof(T) == sizeof(float) ? 2 : 1;

/// Where csr-row-vector asks for all that it reads as it begins.
struct SmallProducts {
    std::int64_t threads_per_multiprocessor = 1024;  ///< which run at once, whatever registers they take
    std::int64_t most_nonzeros = 1'000'000;          ///< more keep the memory busy
    bool operator==(const SmallProducts&) const = default;
};
inline constexpr SmallProducts small_products{};

constexpr bool reads_ahead(std::int64_t nnz, std::int64_t threads, int compute_units,
                           const SmallProducts& limits = small_products)
{
    return nnz <= limits.most_nonzeros && threads <= limits.threads_per_multiprocessor * compute_units;
}

/// How csr-row-vector multiplies a row.
struct RowVectorShape {
    int lanes = 32;
    int width = 1;                   ///< neighbouring entries of a load
    int unroll = row_vector_unroll;  ///< loads of a step
    bool operator==(const RowVectorShape&) const = default;
};

/// The fewest lanes, of 2 to 32, that take a row of mean length in one step. A mean a tenth above what they take still
/// counts: twice the lanes would leave half of them idle. Where many rows are longer than that, each lane makes twice
/// the loads. In pairs, which are fewer loads, lanes take a deviation more.
constexpr RowVectorShape row_vector_shape(const RowStatistics& rows, int width)
{
    const double long_row = rows.mean + rows.deviation;
    const double entries = width == 1 ? rows.mean / 1.1 : long_row;
    RowVectorShape shape{2, width};
    while (shape.lanes < 32 && entries > shape.lanes * shape.unroll * width) {
        shape.lanes *= 2;
    }
    if (width == 1 && shape.lanes < 32 && long_row > shape.lanes * shape.unroll) {
        shape.unroll *= 2;
    }
    return shape;
}

}  // namespace rmsp::kernels
