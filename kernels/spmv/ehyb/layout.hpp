#pragma once

#include <algorithm>
#include <cstdint>

#include <rmsp/host_vector.hpp>
#include <rmsp/matrix.hpp>

/// The layout of kernels "ehyb", "ehyb-ghosts", "ehyb-metis" and "ehyb-natural" as data. lay_out.hpp makes it.
///
/// C. Chen, "Explicit caching HYB: a new high-performance SpMV framework on GPGPU": the rows are cut into parts, by
/// distances in the mesh (mesh_parts.hpp), by METIS as published, or as they come. A thread block multiplies one part
/// with the part's own columns of x in shared memory; the entries in these are stored in slices of 32 rows, sorted by
/// length, with 16-bit columns. All other entries are the *extra rows* (ER): slices with 32-bit columns, sorted by
/// length over the whole matrix, which warps take from a queue when their part is done; their sums are added to y
/// afterwards. A part's own columns are those of its rows (CsrShard::diagonal), as far as it has entries in them. Bytes
/// an entry, double: 10 in parts, 12 in ER; CSR has 12.
///
/// "ehyb-ghosts" goes past the paper: parts are made smaller than the shared memory, and what is left of it keeps the
/// *ghosts*, other columns in which a part has several entries. Hardly any ER remain.
namespace rmsp::kernels {

struct EhybTuning {
    int threads = 768;
    int blocks_per_multiprocessor = 1;  ///< among which the shared memory is shared out
    int entries_in_flight = 16;         ///< that a lane loads before it uses the first, of its row in a part
    int er_entries_in_flight = 8;       ///< of its piece of ER
    double most_outside = 0.2;          ///< share of the entries outside their parts, of what is a mesh
    int longest_row = 512;  ///< entries of a row in a slice; more are ER, whose rows are cut into pieces of so many
    bool operator==(const EhybTuning&) const = default;
};
inline constexpr EhybTuning ehyb_tuning{};

/// Which foreign columns a part keeps.
struct EhybGhosts {
    int fewest_uses =
        0;  ///< entries of the part in one, from which on it is kept while there is room; 0: never, as published
    int room_per_cent = 0;  ///< of a part's own columns, that part_count() leaves for foreign ones
    bool operator==(const EhybGhosts&) const = default;
};
inline constexpr EhybGhosts no_ghosts{};
inline constexpr EhybGhosts ehyb_ghosts{2, 30};

/// How rows get their parts.
enum class EhybOrder : std::uint8_t { natural, mesh, metis };

namespace ehyb {

inline constexpr int slice_rows = 32;
/// Entries whose columns a lane loads at once.
inline constexpr int group = 4;
/// Columns of a part have 16-bit numbers; the one behind the last stands for padding, and its x is 0.
inline constexpr std::int64_t most_columns = 0xffff;
/// Entry of a slot that is padding.
inline constexpr std::uint32_t no_entry = 0xffffffff;
/// Column of such a slot in ER.
inline constexpr std::int32_t no_column = -1;
/// How much larger than the average a part may be: 1.03.
inline constexpr int imbalance_per_mille = 30;

/// Number and size of parts (equations 1 and 2 of the paper): the fewest parts, a multiple of the blocks that run at
/// once, whose columns fit; but none of less than a slice. \param columns  of x that a block has room for
constexpr std::int64_t part_count(std::int64_t rows, std::int64_t columns, std::int64_t blocks,
                                  const EhybGhosts& ghosts = no_ghosts)
{
    const std::int64_t average =
        std::max<std::int64_t>(columns * 1000 / (1000 + imbalance_per_mille) * 100 / (100 + ghosts.room_per_cent), 1);
    const std::int64_t waves = std::max<std::int64_t>((rows + blocks * average - 1) / (blocks * average), 1);
    return std::clamp<std::int64_t>((rows + slice_rows - 1) / slice_rows, 1, waves * blocks);
}

/// Where a slice begins; it ends where the next one does.
struct alignas(8) Slice {
    std::uint32_t entries = 0;  ///< in units of 32: one entry of each row
    std::uint32_t groups = 0;   ///< of columns, in units of 32 lanes
    bool operator==(const Slice&) const = default;
};

/// Where entry k of a lane is stored in a slice that is `width` entries wide: vectors of `vector` values, and what is
/// left one by one.
constexpr std::int64_t value_place(int k, int lane, int width, int vector)
{
    const int first = k / vector * vector;
    return first + vector <= width ? (std::int64_t{first} * slice_rows + lane * vector + (k - first))
                                   : std::int64_t{k} * slice_rows + lane;
}
/// Where the column of a lane's entry k is.
constexpr std::int64_t column_place(int k, int lane)
{
    return (std::int64_t{k / group} * slice_rows + lane) * group + k % group;
}

/// A sliced matrix: in parts with 16-bit columns, or ER with 32-bit ones.
template <template <class> class Array, class Column>
struct Sliced {
    Array<Slice> slices;         ///< and the end
    Array<Column> columns;       ///< group * 32 for each group
    Array<std::uint32_t> entry;  ///< of each value: its place in the arrays of the shard
};

/// In host memory or in that of a device.
template <template <class> class Array>
struct LayoutOf {
    // Parts. Rows of a part are sorted by the length of what is in its slices.
    std::int64_t part_count = 0;
    std::int64_t widest_part = 0;      ///< most columns that a part keeps
    Array<std::int32_t> order;         ///< rows, by part
    Array<std::int32_t> first_row;     ///< of each part, in `order`; and the end
    Array<std::int32_t> first_slice;   ///< of each part; and the end
    Array<std::int32_t> first_column;  ///< of each part, in `columns`; and the end
    Array<std::int32_t> columns;       ///< of x that parts keep: each part's own, then its ghosts, both ascending
    Sliced<Array, std::uint16_t> inside;
    // ER: rows cut into pieces. Lanes take them by length, sums are kept by row.
    std::int64_t pieces = 0;
    Array<std::int32_t> er_piece;  ///< of each lane of the slices
    Array<std::int32_t> er_row;    ///< rows that have pieces, ascending
    Array<std::int32_t> er_first;  ///< first piece of each of these rows; and the end
    Sliced<Array, std::int32_t> er;
};
using Layout = LayoutOf<HostVector>;

}  // namespace ehyb

}  // namespace rmsp::kernels
