#pragma once

#include <cstdint>

/// The layout of kernel "sell" as data and pure functions. Plain C++, so that the host tests it.
///
/// Slices of 32 rows, one lane a row, each as wide as its longest row (SELL-C-sigma: Kreutzer et al., "A unified sparse matrix data
/// format for efficient general sparse matrix-vector multiply", SISC 2014). Entry k of the 32 rows of a slice lies in few
/// neighbouring columns wherever the rows have similar shape, so its columns are one 32-bit base and a small code a lane.
/// Bytes an entry, double: values 8, bases 4/32, codes 0 (diagonals), 1, 2 or 4; CSR has 12. A 27-point stencil of 200^3 in natural
/// order is 80 % diagonals and 20 % 2-byte codes, 8.6 bytes; a 7-point one of 256^3 75 % and 25 %, 8.8; plus x and y, 16 a row.
namespace rmsp::kernels {

struct SellTuning {
    int threads = 128;                   ///< small blocks leave less idle while the last ones end
    int blocks_per_multiprocessor = 16;  ///< full occupancy hides more than loads in flight in each lane do
    int sorted_padding = 5;              ///< per cent of padding above which the rows of a block are sorted by length
    int longest_row = 512;               ///< longer rows are left in CSR, for a whole warp
    int least_fill = 50;                 ///< per cent of a slice that must be entries; emptier slices are left in CSR
    int loads_in_flight = 2;  ///< 16-byte loads of values that a lane issues before it uses the first, at least 2
    bool operator==(const SellTuning&) const = default;
};
inline constexpr SellTuning sell_tuning{};

inline constexpr int slice_rows = 32;
/// Rows are sorted inside blocks of this many (sigma in the paper), so x and y stay in the caches.
inline constexpr int sort_rows = 1024;
/// Entries of a row whose codes a lane reads at once, and whose bases lie side by side.
inline constexpr int slice_group = 4;
/// Codes are counted in blocks: one byte for each entry of a group in each row of a slice.
inline constexpr int code_block_bytes = slice_rows * slice_group;

/// How the columns of a slice are stored.
enum class SliceCode : std::uint8_t {
    csr,       ///< the slice is not stored: its lanes read the CSR arrays
    diagonal,  ///< column = base + lane
    bytes1,    ///< column = base + code
    bytes2,
    bytes4,  ///< column = code; no bases
};

/// What the columns of a slice have in common, over all its k: entry k of the rows that have one.
struct SliceColumns {
    std::int32_t spread = 0;  ///< largest difference of two columns of the same k
    std::int32_t skew = 0;    ///< the same for column - lane; 0: diagonals only
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

/// Whether a block of rows is sorted: `widths` is the sum of the widths of its slices as they are.
constexpr bool rows_are_sorted(int entries, int widths, int sorted_padding = sell_tuning.sorted_padding)
{
    return std::int64_t{widths} * slice_rows * 100 > std::int64_t{entries} * (100 + sorted_padding);
}

/// The row of a lane of a slice.
struct alignas(4) Slot {
    std::uint16_t row = 0;     ///< counted from the first row of the block
    std::uint16_t length = 0;  ///< long_row: left in CSR; 0 behind the last row
    bool operator==(const Slot&) const = default;
};
inline constexpr std::uint16_t long_row = 0xffff;

/// Whether a slice of that width (the longest of its rows that are not left in CSR) is stored.
constexpr bool slice_is_stored(int entries, int width, int least_fill = sell_tuning.least_fill)
{
    return width > 0 && entries * 100 >= slice_rows * width * least_fill;
}

/// A slice as the kernel reads it: one 16-byte load. The positions are those where its parts begin; while the slices are being
/// counted, the sizes of the parts.
struct alignas(16) Slice {
    std::uint32_t values = 0;  ///< in units of 32 values
    std::uint32_t bases = 0;   ///< in groups of 4 bases
    std::uint32_t codes = 0;   ///< in blocks of codes
    std::uint16_t width = 0;
    SliceCode code = SliceCode::csr;
    bool plain = false;  ///< rows in their order and all as long as the slice is wide: the slots need not be read
    bool operator==(const Slice&) const = default;
};
static_assert(sizeof(Slice) == 16);

constexpr Slice sized_slice(int width, SliceCode code, bool plain)
{
    const bool stored = code != SliceCode::csr;
    const auto groups = static_cast<std::uint32_t>((width + slice_group - 1) / slice_group);
    return {stored ? static_cast<std::uint32_t>(width) : 0u,
            stored && code != SliceCode::bytes4 ? groups : 0u,
            groups * static_cast<std::uint32_t>(code_bytes(code)),
            static_cast<std::uint16_t>(width),
            code,
            plain};
}

/// Sizes or positions of all slices.
struct SellExtent {
    std::int64_t values = 0;  ///< in the units of Slice
    std::int64_t bases = 0;
    std::int64_t codes = 0;
    bool operator==(const SellExtent&) const = default;
};

constexpr bool fits_slice_positions(const SellExtent& extent)
{
    constexpr std::int64_t limit = 0xffffffff;
    return extent.values <= limit && extent.bases <= limit && extent.codes <= limit;
}

}  // namespace rmsp::kernels
