#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <rmsp/partition.hpp>

/// The layout of kernel "ell" as data and pure functions (ELLPACK: Bell and Garland, "Implementing sparse matrix-vector
/// multiplication on throughput-oriented processors", SC 2009, section 3.2). All rows have room for equally many
/// entries, so that a thread knows from its number alone where its own are: a product of a small matrix is waits for
/// the memory, one behind the other, and that for row pointers is spared. Plain C++, so that the host tests it.
namespace rmsp::kernels {

struct EllTuning {
    int threads = 128;
    int longest_lane = 4;                 ///< entries of a lane at most: all are asked for before the first x is
    std::int64_t most_entries = 400'000;  ///< with padding: more keep the memory busy, and then bytes decide
    bool operator==(const EllTuning&) const = default;
};
inline constexpr EllTuning ell_tuning{};

/// How rows are laid out: `lanes` threads each, a power of two up to a warp, and so many entries of each.
struct EllShape {
    int lanes = 1;
    int entries = 0;
    bool left = false;  ///< some rows have more, which is left in CSR
    bool operator==(const EllShape&) const = default;
};

/// Entries with padding: whole warps.
constexpr std::int64_t ell_entries(std::int64_t rows, const EllShape& shape)
{
    const std::int64_t warps = (rows * shape.lanes + 31) / 32;
    return warps * 32 * shape.entries;
}

/// The fewest lanes that have room for a row; rows are as wide as the longest, or as most are where that would store
/// far more than there is. What they have beyond is left in CSR.
inline EllShape ell_shape(const RowStatistics& rows, const EllTuning& tuning = ell_tuning)
{
    const auto shape_of = [&](std::int64_t width) {
        EllShape shape;
        while (shape.lanes < 32 && width > std::int64_t{shape.lanes} * tuning.longest_lane) {
            shape.lanes *= 2;
        }
        const std::int64_t each = (width + shape.lanes - 1) / shape.lanes;
        shape.entries = static_cast<int>(std::clamp<std::int64_t>(each, 1, tuning.longest_lane));
        shape.left = std::int64_t{shape.lanes} * shape.entries < rows.longest_row;
        return shape;
    };
    constexpr std::int64_t few = 1 << 16;  // padding that takes no time
    const auto fits = [&](const EllShape& shape) { return ell_entries(rows.rows, shape) <= 2 * rows.nnz + few; };
    const EllShape whole = shape_of(rows.longest_row);
    const EllShape most = shape_of(static_cast<std::int64_t>(std::ceil(rows.mean + rows.deviation)));
    return fits(whole) ? whole : fits(most) ? most : shape_of(static_cast<std::int64_t>(rows.mean));
}

/// Whether "auto" weighs it: few entries, none of them left in CSR.
inline bool weighs_ell(const RowStatistics& rows, const EllTuning& tuning = ell_tuning)
{
    const EllShape shape = ell_shape(rows, tuning);
    return rows.nnz > 0 && !shape.left && ell_entries(rows.rows, shape) <= tuning.most_entries;
}

}  // namespace rmsp::kernels
