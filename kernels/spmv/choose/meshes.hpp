#pragma once

#include <kernels/spmv/choose/model.hpp>

namespace rmsp::kernels {

/// Which matrix may be a mesh whose numbering is bad: in another order of its rows, columns that are used together are
/// neighbours. Limits of Features.
struct BadNumbering {
    double least_sectors = 0.5;
    double most_hubs = 0.1;
    /// Features::two_step_columns: of meshes 0.2 to 0.52, of a few diagonals or a thinned band up to 0.86, and of
    /// random columns, which no order brings together, 0.95 and more.
    double most_two_step_columns = 0.9;
    double most_two_step_columns_of_mesh = 0.6;
    /// Of dense blocks, whose columns lie together and which several rows share: codes of sliced rows say how far from
    /// the diagonal they are. Formats of such blocks gather few enough sectors, unless x is too large to stay in the
    /// L2. (On an H100, 3 unknowns a node, double: 16 MB lose a tenth, 24 MB gain 4 %, 40 MB 31 %, 80 MB 55 %.)
    double least_block_sectors = 0.06;
    double least_block_code = 3;
    double least_far_bytes = 24e6;
};
inline constexpr BadNumbering bad_numbering{};

/// Whether another order may bring columns together; that of two steps says nothing while it is not known.
inline bool may_be_ordered(const Features& f)
{
    return f.hub_share <= bad_numbering.most_hubs && f.two_step_columns <= bad_numbering.most_two_step_columns;
}

inline bool numbered_badly(const Features& f) { return f.sectors >= bad_numbering.least_sectors && may_be_ordered(f); }

/// \param value_bytes  of an entry of x
inline bool blocks_numbered_badly(const Features& f, double value_bytes)
{
    return f.block.entries() > 1 && f.sectors >= bad_numbering.least_block_sectors &&
           f.code_bytes >= bad_numbering.least_block_code &&
           x_entries(f) * value_bytes >= bad_numbering.least_far_bytes && may_be_ordered(f);
}

/// How many different columns there are two steps from a row (from each of its columns to the row of that number), for
/// each way of two steps: 1 where no two ways lead to the same column. Of rows spread over the shard; 0: they have too
/// few ways. \param row_ptr  as spmv_features() \param first_row  number of the first row, as columns are numbered
double two_step_columns(const RowStatistics& rows, IndexView row_ptr, std::int64_t first_row, ColumnReader& columns);

}  // namespace rmsp::kernels
