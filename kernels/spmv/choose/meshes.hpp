#pragma once

#include <algorithm>

#include <kernels/spmv/choose/model.hpp>

namespace rmsp::kernels {

/// Which matrix may be a mesh whose numbering is bad: in another order of its rows, columns that are used together are
/// neighbours. Limits of Features.
struct BadNumbering {
    double least_sectors = 0.5;
    double most_hubs = 0.1;
    /// Of dense blocks, whose columns lie together and which several rows share: codes of sliced rows say how far from
    /// the diagonal they are. Formats of such blocks gather few enough sectors, unless x is too large to stay in the
    /// L2. (On an H100, of whose L2 half is near, 3 unknowns a node: 16 MB lose a tenth, 24 MB gain 4 %, 40 MB 31 %,
    /// 80 MB 55 %.)
    double least_block_sectors = 0.06;
    double least_block_code = 3;
    double least_far_bytes = 24e6;
};
inline constexpr BadNumbering bad_numbering{};

inline bool numbered_badly(const Features& f)
{
    return f.sectors >= bad_numbering.least_sectors && f.hub_share <= bad_numbering.most_hubs;
}

/// \param value_bytes  of an entry of x
inline bool blocks_numbered_badly(const Features& f, double value_bytes)
{
    return f.block.entries() > 1 && f.sectors >= bad_numbering.least_block_sectors &&
           f.code_bytes >= bad_numbering.least_block_code && f.hub_share <= bad_numbering.most_hubs &&
           x_entries(f) * value_bytes >= bad_numbering.least_far_bytes;
}

}  // namespace rmsp::kernels
