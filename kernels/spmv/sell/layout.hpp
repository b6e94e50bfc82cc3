#pragma once

#include <cstdint>

#include <kernels/spmv/common/slices.hpp>

/// The layout of kernel "sell" as data and pure functions: slices of rows (common/slices.hpp), and where they are.
/// Plain C++, so that the host tests it.
namespace rmsp::kernels {

struct SellTuning {
    int threads = 128;                   ///< small blocks leave less idle while the last ones end
    int blocks_per_multiprocessor = 16;  ///< full occupancy hides more than loads in flight in each lane do
    int blocks_with_everything = 12;  ///< of the kernel for encoded values beside rows in CSR, which would spill much
    int blocks_of_two_groups = 8;     ///< which leave registers for the loads of two groups at once
    int blocks_of_four_groups = 5;    ///< and of four
    int least_fill = 50;              ///< per cent of a slice that must be entries; emptier slices are left in CSR
    bool operator==(const SellTuning&) const = default;
};
inline constexpr SellTuning sell_tuning{};

/// Thread blocks that a multiprocessor runs at once of a product whose lanes load so many groups before they use the
/// first. `everything`: of encoded values beside rows in CSR.
constexpr int blocks_at_once(int groups, bool everything, const SellTuning& tuning = sell_tuning)
{
    return groups == 4   ? tuning.blocks_of_four_groups
           : groups == 2 ? tuning.blocks_of_two_groups
           : everything  ? tuning.blocks_with_everything
                         : tuning.blocks_per_multiprocessor;
}

/// How many groups the lanes of a product load before they use the first: as many as leave all slices at once on the
/// device, whose time is that of loads which wait for one another. Short rows have no use for many.
/// \param entries  that the slices store
constexpr int groups_at_once(std::int64_t slices, std::int64_t entries, int compute_units,
                             const SellTuning& tuning = sell_tuning)
{
    const std::int64_t lanes = slices * slice_rows;
    int groups = entries <= lanes * slice_group ? 1 : entries <= lanes * slice_group * 2 ? 2 : 4;
    while (groups > 1 &&
           slices > std::int64_t{compute_units} * blocks_at_once(groups, false, tuning) * tuning.threads / slice_rows) {
        groups /= 2;
    }
    return groups;
}

/// Whether a block of rows is sorted: `widths` is the sum of the widths of its slices as they are.
constexpr bool rows_are_sorted(int entries, int widths, int sorted_padding = slice_policy.sorted_padding)
{
    return std::int64_t{widths} * slice_rows * 100 > std::int64_t{entries} * (100 + sorted_padding);
}

/// The row of a lane of a slice. Of a slice with masks it is the mask instead: bit k says whether the row has entry k.
struct alignas(4) Slot {
    std::uint16_t row = 0;     ///< counted from the first row of the block
    std::uint16_t length = 0;  ///< long_row: left in CSR; 0 behind the last row
    bool operator==(const Slot&) const = default;
};
inline constexpr std::uint16_t long_row = 0xffff;

/// Whether a slice of that width (the longest of its rows that are not left in CSR) is stored. The last one may have
/// fewer rows.
constexpr bool slice_is_stored(int entries, int width, int rows = slice_rows, int least_fill = sell_tuning.least_fill)
{
    return width > 0 && entries * 100 >= rows * width * least_fill;
}

/// Groups of 4 bases that a slice has.
constexpr int base_groups(int width, SliceCode code)
{
    return code == SliceCode::csr || code == SliceCode::bytes4 ? 0 : slice_groups(width);
}

/// Blocks that the codes of a slice take: those of a last group that is not whole, no more than they need.
constexpr int code_blocks(int width, SliceCode code)
{
    const int last = width % slice_group;
    return width / slice_group * code_bytes(code) + whole_blocks(last * slice_rows * code_bytes(code));
}

/// A slice as the kernel reads it: one 16-byte load. The positions are those where its parts begin; while the slices
/// are being counted, the sizes of the parts.
struct alignas(16) Slice {
    std::uint32_t values = 0;  ///< in blocks
    std::uint32_t bases = 0;   ///< in groups of 4 bases
    std::uint32_t codes = 0;   ///< in blocks
    std::uint16_t width = 0;
    SliceCode code : 4 = SliceCode::csr;
    SliceValues stored : 4 = SliceValues::raw;
    bool plain = false;  ///< rows in their order and all as long as the slice is wide: the slots need not be read
    bool operator==(const Slice&) const = default;
};
static_assert(sizeof(Slice) == 16);

constexpr Slice sized_slice(int width, SliceCode code, bool plain, int value_bytes)
{
    const bool stored = code != SliceCode::csr;
    Slice slice;
    slice.values = stored ? static_cast<std::uint32_t>(value_blocks(SliceValues::raw, width, 0, value_bytes)) : 0u;
    slice.bases = static_cast<std::uint32_t>(base_groups(width, code));
    slice.codes = static_cast<std::uint32_t>(code_blocks(width, code));
    slice.width = static_cast<std::uint16_t>(width);
    slice.code = code;
    slice.plain = plain;
    return slice;
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
