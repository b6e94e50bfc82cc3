#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

/// Which way each row of C is counted and added up on a GPU, as data and pure functions, so that the host can test what
/// runs on the device. A row goes to a class; a class is one launch. Here is what both phases know of rows.
namespace rmsp::kernels::spgemm {

/// What the analysis knows of a row of C; counts are clamped to 2^31 - 1.
struct RowBounds {
    std::int32_t first;     ///< least column of the rows of B that it touches
    std::int32_t last;      ///< greatest one; below `first` if there is none
    std::int32_t words;     ///< (word of 32 columns, mask) pairs of those rows of B
    std::int32_t products;  ///< entries of those rows of B
    constexpr std::int64_t span() const { return last < first ? 0 : std::int64_t{last} - first + 1; }
    /// Words of 32 columns, aligned to 32, from `first` to `last`.
    constexpr std::int64_t span_words() const { return last < first ? 0 : (last >> 5) - (first >> 5) + 1; }
};

/// How the rows of a class are worked on.
struct Shape {
    int threads;         ///< of a block
    int threads_a_row;   ///< at most 32, or `threads`
    std::int64_t bytes;  ///< of shared memory a row
    bool operator==(const Shape&) const = default;
};

/// Rows of so few products are neither collected as words nor looked up: the products are sorted by column. Twice as
/// many are few where they share words with few others: as words they would be nearly as many to sort, and be looked up
/// besides. Those that share them with many, as in A P of multigrid, are in a few columns again and again, of which a
/// look-up finds most of them at once.
inline constexpr std::int32_t most_few = 64;
inline constexpr std::int32_t most_few_scattered = 2 * most_few;
inline constexpr std::int32_t products_a_word_of_scattered = 4;  ///< fewer than that
/// `few`: what is few here, at most most_few_scattered, which all classes of few products end at; 0: nothing.
constexpr bool has_few(const RowBounds& row, int few)
{
    const bool scattered =
        few > 0 && row.products <= most_few_scattered && row.words > row.products / products_a_word_of_scattered;
    // A column's distance from the first and the product's number are sorted as one 32-bit key, and no key has all bits
    // set.
    return (row.products <= few || scattered) && row.span() < (std::int64_t{1} << 32) / most_few_scattered;
}

/// A row, or group of twins, with more products than this takes a block.
inline constexpr std::int64_t most_products_of_a_warp = (1 << 17) - 1;

/// What is a long row, as times the products or entries of A of a row on average.
inline constexpr std::int64_t times_of_a_long_row = 4;

constexpr std::int32_t most_products_unspread = std::numeric_limits<std::int32_t>::max();
inline constexpr std::array parts_of_a_share{2, 1};
/// A row with more products than this takes longer than all others together would on an equal share of the device, as a
/// block alone does not fill a multiprocessor, and several times as long as most, unless there are fewer rows than
/// multiprocessors: it is spread over many blocks.
/// `parts` of such a share: the first of parts_of_a_share whose rows there is room for.
constexpr std::int32_t spread_above(std::int64_t all_products, std::int64_t rows, int units, int parts)
{
    const bool few_rows = rows < units;
    // Of a row for which four launches more are worth it, and which is not a warp's.
    const std::int64_t least = few_rows ? most_products_of_a_warp : 1 << 14;
    const std::int64_t share = all_products / (std::int64_t{std::max(units, 1)} * parts);
    const std::int64_t long_row = few_rows ? 0 : times_of_a_long_row * (all_products / std::max<std::int64_t>(rows, 1));
    return static_cast<std::int32_t>(
        std::min<std::int64_t>(std::max({least, share, long_row}), most_products_unspread));
}
/// Rows of fewer pairs have classes that never see one that is spread.
inline constexpr std::int32_t pairs_of_a_warp = 4096;
constexpr bool is_spread(const RowBounds& row, std::int32_t above)
{
    return row.products > above && row.words > pairs_of_a_warp;
}
/// How many rows are, at most.
constexpr std::int64_t most_spread(int units, int parts) { return std::int64_t{std::max(units, 1)} * parts; }

/// Where the words, or the entries, of a row are, and how many there are.
struct Extent {
    static constexpr int count_bits = 27;
    std::uint64_t packed;
    Extent() = default;
    constexpr explicit Extent(std::uint64_t as_packed) : packed(as_packed) {}
    constexpr Extent(std::int64_t place, std::int32_t count)
        : packed((static_cast<std::uint64_t>(place) << count_bits) | static_cast<std::uint32_t>(count))
    {
    }
    /// -1: nowhere.
    constexpr std::int64_t place() const { return static_cast<std::int64_t>(packed) >> count_bits; }
    constexpr std::int32_t count() const { return static_cast<std::int32_t>(packed & ((1u << count_bits) - 1u)); }
};

/// Neighbouring rows with the same columns in the same order are twins, as matrices with several unknowns a node have
/// them. A warp takes up to most_twins rows of A together, and as many rows of B: then a column is looked up once for
/// all of them.
inline constexpr int most_twins = 4;
/// Groups of twins lie within so many rows from a multiple of it; a multiple of 2, 3 and 4.
inline constexpr int twin_tile = 48;
/// Whether there are enough to pay for it.
constexpr bool worth_grouping(std::int64_t twins, std::int64_t rows) { return twins * 2 >= rows; }

/// Lanes for each row of B, for a row of C whose rows of B have `work` entries in all: the fewest, of `least` to
/// `most`, that take a row of mean length in one step. Kurt et al. ("Characterization of data movement requirements for
/// sparse matrix computations on GPUs", section VII) adapt to the same mean, but give each virtual warp a row of A of
/// its own.
constexpr int virtual_warp(std::int64_t work, std::int64_t rows_of_b, int least = 1, int most = 32)
{
    int lanes = least;
    while (lanes < most && lanes * rows_of_b < work) {
        lanes *= 2;
    }
    return lanes;
}

}  // namespace rmsp::kernels::spgemm
