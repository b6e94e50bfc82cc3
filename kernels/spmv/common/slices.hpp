#pragma once

#include <cstdint>

/// How rows in slices are encoded: what kernels with such a format store, and what the automatic choice looks for.
/// Plain C++, so that the host tests it.
///
/// Slices of 32 rows, one lane a row, each as wide as its longest row (SELL-C-sigma: Kreutzer et al., "A unified sparse
/// matrix data format for efficient general sparse matrix-vector multiply", SISC 2014). Entry k of the 32 rows of a
/// slice lies in few neighbouring columns wherever the rows have similar shape, so its columns are one 32-bit base and
/// a small code a lane. Where rows lack entries here and there, as those at the ends of a line of a grid do, the slice
/// has all their diagonals, and a row says by bits which it has. Bases of diagonals count from the row, and
/// neighbouring slices that have the same ones, as most of a stencil do, share them. Bytes an entry, double: values 8,
/// bases 4/32 or nearly none, codes 0 (diagonals), 1, 2 or 4; CSR has 12. Stencils in natural order take 8 bytes an
/// entry, and a byte a row; plus x and y, 16 a row. Values are kept in fewer bytes, to the bit, where enough slices
/// allow it (SliceValues): constant coefficients take 1/4 to 1 byte.
namespace rmsp::kernels {

/// What decides how rows are stored.
struct SlicePolicy {
    int sorted_padding = 5;  ///< per cent of padding above which the rows of a block are sorted by length
    int longest_row = 512;   ///< longer rows are left in CSR, for a whole warp
    int least_saved = 10;    ///< per cent of the values' bytes that encoding must save; less, and all stay as they are
    bool operator==(const SlicePolicy&) const = default;
};
inline constexpr SlicePolicy slice_policy{};

inline constexpr int slice_rows = 32;
/// Rows of a block, which are sorted or left in their order together.
inline constexpr int sort_rows = 1024;
/// Rows of a block that change places with each other (sigma in the paper): what they gather is near by.
inline constexpr int sort_window = 256;
static_assert(sort_rows % sort_window == 0 && sort_window % slice_rows == 0);
/// Entries of a row whose codes a lane reads at once, and whose bases lie side by side.
inline constexpr int slice_group = 4;
/// Values and codes are counted in blocks: one byte for each entry of a group in each row of a slice.
inline constexpr int slice_block_bytes = slice_rows * slice_group;

/// How the columns of a slice are stored.
enum class SliceCode : std::uint8_t {
    csr,       ///< the slice is not stored: its lanes read the CSR arrays
    diagonal,  ///< column = row + base
    masked,    ///< column = row + base, of rows in their order, which need not have all entries: bit l of word k says
               ///< whether row l has entry k
    bytes1,    ///< column = first row of the slice + base + code
    bytes2,
    bytes4,  ///< column = code; no bases
};

/// How the values of a slice are stored.
enum class SliceValues : std::uint8_t {
    raw,
    floats,   ///< doubles that are exactly floats
    uniform,  ///< one value for each k: all rows that have an entry k have the same
    nibbles,  ///< 4-bit indices into a table of the slice's own
    bytes,    ///< 8-bit indices into a table of the slice's own
};
inline constexpr int most_table_entries = 256;

/// What the columns of a slice have in common, over all its k: entry k of the rows that have one.
struct SliceColumns {
    std::int32_t spread = 0;  ///< largest difference of two columns of the same k
    std::int32_t skew = 0;    ///< largest difference of two column - lane of the same k; 0: diagonals only
    bool operator==(const SliceColumns&) const = default;
};

constexpr SliceCode slice_code(const SliceColumns& columns)
{
    return columns.skew == 0          ? SliceCode::diagonal
           : columns.spread <= 0xff   ? SliceCode::bytes1
           : columns.spread <= 0xffff ? SliceCode::bytes2
                                      : SliceCode::bytes4;
}

constexpr int code_bytes(SliceCode code)
{
    return code == SliceCode::bytes1 ? 1 : code == SliceCode::bytes2 ? 2 : code == SliceCode::bytes4 ? 4 : 0;
}

/// Whether a slice is stored as that many diagonals, rather than in as many entries as its longest row has, `width`,
/// and codes.
constexpr bool takes_masks(int diagonals, int width, SliceCode code, int value_bytes)
{
    return diagonals <= slice_rows && diagonals * value_bytes <= width * (value_bytes + code_bytes(code));
}

constexpr int slice_groups(int width) { return (width + slice_group - 1) / slice_group; }

constexpr int whole_blocks(int bytes) { return (bytes + slice_block_bytes - 1) / slice_block_bytes; }

/// Bytes before the table of a slice, which begins with the indices of its entries: a group's of each lane side by
/// side.
constexpr int index_bytes(SliceValues stored, int width)
{
    return slice_groups(width) * (stored == SliceValues::nibbles ? slice_block_bytes / 2 : slice_block_bytes);
}

/// Blocks that the values of a slice take; `distinct` is how many of them differ, which only tables depend on.
constexpr int value_blocks(SliceValues stored, int width, int distinct, int value_bytes)
{
    switch (stored) {
        case SliceValues::raw:
            return width * slice_rows * value_bytes / slice_block_bytes;
        case SliceValues::floats:
            return width;
        case SliceValues::uniform:
            return whole_blocks(width * value_bytes);
        case SliceValues::nibbles:
        case SliceValues::bytes:
            return whole_blocks(index_bytes(stored, width)) + whole_blocks(distinct * value_bytes);
    }
    return 0;
}

/// What the values of a slice have in common.
struct ValueTraits {
    bool floats = true;
    bool uniform = true;
    int distinct = 0;  ///< above most_table_entries: at least so many
    bool operator==(const ValueTraits&) const = default;
};

/// How a slice is stored in the fewest blocks; of equals, the one that is decoded fastest.
constexpr SliceValues slice_storage(const ValueTraits& values, int width, int value_bytes)
{
    SliceValues best = SliceValues::raw;
    int least = value_blocks(best, width, 0, value_bytes);
    const auto consider = [&](SliceValues stored, bool possible) {
        const int blocks = value_blocks(stored, width, values.distinct, value_bytes);
        if (possible && blocks < least) {
            best = stored;
            least = blocks;
        }
    };
    consider(SliceValues::uniform, values.uniform);
    consider(SliceValues::floats, values.floats);
    consider(SliceValues::nibbles, values.distinct <= 16);
    consider(SliceValues::bytes, values.distinct <= most_table_entries);
    return best;
}

/// Whether a matrix is stored with encoded values, by the blocks of all slices.
constexpr bool values_are_encoded(std::int64_t encoded, std::int64_t raw, int least_saved = slice_policy.least_saved)
{
    return (raw - encoded) * 100 >= raw * least_saved && raw > encoded;
}

}  // namespace rmsp::kernels
