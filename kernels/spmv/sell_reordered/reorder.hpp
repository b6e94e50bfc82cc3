#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include <kernels/context.hpp>
#include <kernels/spmv/spmv.hpp>

/// A new numbering of the rows of a shard, and of the columns that belong to them, after which neighbours in the graph
/// of the matrix are neighbours in memory. Made on the GPU.
///
/// Cuthill and McKee ("Reducing the bandwidth of sparse symmetric matrices", 1969), level by level as in K. I.
/// Karantasis et al., "Parallelization of Reordering Algorithms for Bandwidth and Wavefront Reduction", SC 2014: each
/// vertex of the next level belongs to the first vertex of this one that it is a neighbour of; children follow each
/// other as their parents do, those of one parent by degree, then twins, which have the same columns, beside each
/// other, so that several unknowns of a node stay together, then as they stand in its row. The result is that of the
/// serial algorithm. It is not reversed, which products do not notice. The graph has an edge from each row to those of
/// its columns that belong to rows; rows that are not reached so begin anew.
namespace rmsp::kernels {

struct ReorderTuning {
    int threads = 1024;
    int blocks_per_multiprocessor = 1;  ///< few wait at the barrier, and nothing is spilled
    int sorted_rounds = 4;  ///< times the lanes that look at a row: so many children of one parent are sorted at most
    /// A level of more than one in so many rows: hardly a mesh, and neighbours do not come near each other.
    int least_levels = 8;
    std::int64_t small_rows = 1 << 16;  ///< fewer are ordered whatever their levels are
    int searched_levels = 512;          ///< of a graph that has more, many vertices spread over it begin at once
    int most_levels = 4096;             ///< what lies behind keeps its order
    int more_starts = 4;                ///< times as many vertices begin anew each time that nothing more is reached
    int least_twins = 40;  ///< per cent of the rows that follow a twin where blocks are looked for: of pairs half do
    bool operator==(const ReorderTuning&) const = default;
};
inline constexpr ReorderTuning reorder_tuning{};

/// Sums of these over the columns of rows are equal for twins, and hardly ever else.
constexpr std::uint32_t column_mark(std::int32_t column)
{
    std::uint32_t mark = static_cast<std::uint32_t>(column) * 2654435761u;
    mark = (mark ^ mark >> 15) * 2246822519u;
    return mark ^ mark >> 13;
}

/// How many vertices begin at once where a search of that many levels reached that few rows: regions twice as small.
constexpr std::int64_t starts_at_once(std::int64_t rows, std::int64_t reached)
{
    return reached >= rows ? 1 : std::min(rows, (2 * rows + reached - 1) / reached);
}

struct Ordering {
    DeviceArray<std::int32_t> row;    ///< of each place; empty where the graph is not one that an order helps
    DeviceArray<std::int32_t> place;  ///< of each row
    std::int64_t levels = 0;          ///< of the order; of the search before it where that ended there
    std::int64_t widest = 0;          ///< rows of the widest level of that search
    std::int64_t twins = 0;           ///< rows that follow a twin
};

/// Whether the columns that belong to the rows are all there, so that both can be numbered alike.
template <class T>
constexpr bool has_square_block(const CsrShard<T>& shard)
{
    return shard.diagonal >= 0 && shard.diagonal + shard.rows <= shard.cols;
}

/// Orders the rows of a shard that has_square_block(). The same shard gets the same order. Waits for the context's
/// stream. \throws Error(out_of_memory), Error(device)
template <class T>
Ordering order_rows(const CsrShard<T>& shard, const Context& context, const ReorderTuning& tuning = reorder_tuning);

/// Numbers of the columns of a part of a matrix, after which its rows in an order find what they need of x near each
/// other.
struct ColumnNumbers {
    DeviceArray<std::int32_t> column;  ///< of each number
    DeviceArray<std::int32_t> number;  ///< of each column with entries
    std::int64_t touched = 0;          ///< columns with entries, whose numbers come first
};

/// Columns that belong to rows follow each other as those do; each of the others comes where the first row is that has
/// an entry in it. Waits for the context's stream. \throws Error(out_of_memory), Error(device)
template <class T>
ColumnNumbers number_columns(const CsrShard<T>& shard, const Ordering& order, const Context& context);

/// An operator that can permute y while it writes it.
template <class T>
class ScatteringSpmv : public SpmvOperator<T> {
public:
    /// apply() that takes row y_row[i] of y for row i of the shard.
    virtual void apply_to(T alpha, const T* x, T beta, T* y, const std::int32_t* y_row, const Context& context) = 0;
};

/// Kernel "sell". \throws as its prepare_sell()
template <class T>
std::unique_ptr<ScatteringSpmv<T>> prepare_scattering_sell(const CsrShard<T>& shard, const Context& context);

}  // namespace rmsp::kernels
