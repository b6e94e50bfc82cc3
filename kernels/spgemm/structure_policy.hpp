#pragma once

#include <algorithm>
#include <cstdint>

#include <kernels/spgemm/row_policy.hpp>

/// Classes of rows in the symbolic phase, which counts the columns of C.
namespace rmsp::kernels::spgemm {

/// The symbolic phase. A row's columns are collected as bits of words of 32 columns.
enum class StructureClass : std::uint8_t {
    none,  ///< no products
    few8,  ///< part of a warp: up to 8 products, sorted in registers; their columns are not stored, and so on
    few16,
    few32,
    few64,
    few128,
    sort32,  ///< a warp: hash table of words, then sorted; up to 32 pairs, and so on
    sort64,
    sort128,
    sort256,
    hash512,  ///< a block: a larger hash table of words, then sorted; up to 512 pairs, and so on
    hash1024,
    hash2048,
    hash4096,
    bits32,  ///< a warp: bitmap of up to 32 words, and so on
    bits128,
    bits512,
    bits2048,
    bits4096,  ///< a block
    bits8192,
    bits16384,
    bits51200,  ///< wider rows in several passes
    count
};

struct StructureLimits {
    std::int64_t words_per_pair = 16;  ///< a bitmap with more words than this for each pair is mostly empty
    std::int64_t pairs_of_a_warp = spgemm::pairs_of_a_warp;  ///< a row with more takes a block,
    std::int64_t pairs_of_a_block = 1 << 16;                 ///< with more the largest, however narrow its bitmap is
    std::int64_t static_bytes = 16 << 10;  ///< of shared memory that stay free for what a block takes besides
    bool operator==(const StructureLimits&) const = default;
};

/// Products that a class of kind few takes, pairs that one of kind sort or hash takes, words that a bitmap holds.
constexpr int structure_capacity(StructureClass c)
{
    switch (c) {
        case StructureClass::few8:
            return 8;
        case StructureClass::few16:
            return 16;
        case StructureClass::few32:
            return 32;
        case StructureClass::few64:
            return 64;
        case StructureClass::few128:
            return 128;
        case StructureClass::sort32:
        case StructureClass::bits32:
            return 32;
        case StructureClass::sort64:
            return 64;
        case StructureClass::sort128:
        case StructureClass::bits128:
            return 128;
        case StructureClass::sort256:
            return 256;
        case StructureClass::bits512:
        case StructureClass::hash512:
            return 512;
        case StructureClass::hash1024:
            return 1024;
        case StructureClass::bits2048:
        case StructureClass::hash2048:
            return 2048;
        case StructureClass::bits4096:
        case StructureClass::hash4096:
            return 4096;
        case StructureClass::bits8192:
            return 8192;
        case StructureClass::bits16384:
            return 16384;
        case StructureClass::bits51200:
            return 51200;
        default:
            return 0;
    }
}
constexpr bool is_few(StructureClass c) { return c >= StructureClass::few8 && c <= StructureClass::few128; }
constexpr bool sorts(StructureClass c) { return c >= StructureClass::sort32 && c <= StructureClass::sort256; }
constexpr bool hashes(StructureClass c) { return c >= StructureClass::hash512 && c <= StructureClass::hash4096; }

/// Words of the summary of a bitmap: a bit for each word.
constexpr int summary_words(int words) { return (words + 31) / 32; }

/// Widest bitmap that a GPU with so much shared memory a block has room for.
constexpr StructureClass widest_bitmap(std::int64_t shared_limit)
{
    return shared_limit >= 220 << 10  ? StructureClass::bits51200
           : shared_limit >= 72 << 10 ? StructureClass::bits16384
                                      : StructureClass::bits8192;
}

/// Words of the bitmaps of a launch whose widest row has so many.
constexpr int bitmap_words(StructureClass c, std::int64_t widest)
{
    const std::int64_t most = structure_capacity(c);
    return static_cast<int>(widest < most ? (widest + 31) / 32 * 32 : most);
}

/// Of a hash table with room for so many pairs, and bits, 32 words each, that say where a word comes in the row's
/// order, with how many come before them.
constexpr std::int64_t table_bytes(std::int64_t capacity, std::int64_t ranks) { return 16 * capacity + 8 * ranks; }
/// Ranks of a launch of a class of hash tables whose widest row has so many words; 0: it is so wide that words are
/// sorted, which takes room for as many words as pairs.
constexpr int table_ranks(StructureClass c, std::int64_t widest)
{
    constexpr std::int64_t least = 2048;
    const std::int64_t most = structure_capacity(c) > least ? structure_capacity(c) : least;
    const std::int64_t ranks = (widest + 31) / 32;
    return ranks <= most ? static_cast<int>(ranks) : 0;
}

constexpr Shape structure_shape(StructureClass c, int capacity)
{
    if (sorts(c)) {
        return {128, 32, std::int64_t{2} * capacity * 8};
    }
    if (hashes(c)) {
        // Twice as many slots as pairs, of a word's number and mask, and the words that were found, to be sorted.
        const int threads = capacity <= 1024 ? 128 : capacity <= 2048 ? 256 : 512;
        return {threads, threads, table_bytes(capacity, capacity)};
    }
    const std::int64_t bytes = 4 * (std::int64_t{capacity} + summary_words(capacity));
    switch (c) {
        case StructureClass::bits4096:
            return {128, 128, bytes};
        case StructureClass::bits8192:
            return {256, 256, bytes};
        case StructureClass::bits16384:
            return {512, 512, bytes};
        case StructureClass::bits51200:
            return {1024, 1024, bytes};
        default:
            return {128, 32, bytes};
    }
}

/// `few`: products of rows that have classes of their own; 0: none have.
constexpr StructureClass structure_class(const RowBounds& row, std::int64_t shared_limit, int few,
                                         StructureLimits limits = {})
{
    if (row.words == 0) {
        return StructureClass::none;
    }
    if (has_few(row, few)) {
        return row.products <= 8    ? StructureClass::few8
               : row.products <= 16 ? StructureClass::few16
               : row.products <= 32 ? StructureClass::few32
               : row.products <= 64 ? StructureClass::few64
                                    : StructureClass::few128;
    }
    const std::int64_t words = row.span_words();
    if (words <= 2048 && row.words <= limits.pairs_of_a_warp &&
        (words <= 32 || words <= limits.words_per_pair * row.words)) {
        return words <= 32    ? StructureClass::bits32
               : words <= 128 ? StructureClass::bits128
               : words <= 512 ? StructureClass::bits512
                              : StructureClass::bits2048;
    }
    // A word's distance from the first and its slot are sorted as one 32-bit key.
    const int pairs = row.words <= 32 ? 32 : row.words <= 64 ? 64 : row.words <= 128 ? 128 : 256;
    if (row.words <= pairs && words <= (std::int64_t{1} << 32) / (2 * pairs)) {
        return pairs == 32    ? StructureClass::sort32
               : pairs == 64  ? StructureClass::sort64
               : pairs == 128 ? StructureClass::sort128
                              : StructureClass::sort256;
    }
    const StructureClass table = row.words <= 512    ? StructureClass::hash512
                                 : row.words <= 1024 ? StructureClass::hash1024
                                 : row.words <= 2048 ? StructureClass::hash2048
                                                     : StructureClass::hash4096;
    const StructureClass widest = widest_bitmap(shared_limit);
    const StructureClass fitting = row.words > limits.pairs_of_a_block ? StructureClass::bits51200
                                   : words <= 4096                     ? StructureClass::bits4096
                                   : words <= 8192                     ? StructureClass::bits8192
                                   : words <= 16384                    ? StructureClass::bits16384
                                                                       : StructureClass::bits51200;
    const StructureClass bitmap = fitting < widest ? fitting : widest;
    // The fewer bytes a row takes of a multiprocessor, the more rows are under way; sorting has its price. A row that
    // is wider than the bitmap would be read again for each part of it.
    const std::int64_t table_bytes = structure_shape(table, structure_capacity(table)).bytes;
    const std::int64_t bitmap_bytes = structure_shape(bitmap, bitmap_words(bitmap, words)).bytes;
    const bool in_parts = words > structure_capacity(bitmap);
    return row.words <= structure_capacity(table) && table_bytes + limits.static_bytes <= shared_limit &&
                   (in_parts || 2 * table_bytes <= bitmap_bytes)
               ? table
               : bitmap;
}

/// Blocks for a multiprocessor, at most: enough to keep it full; each takes several rows, since its shared memory is
/// cleared once.
inline constexpr std::int64_t structure_blocks_a_unit = 16;

/// For how many short rows a warp takes room in the pool at a time, where so many warps work on so many rows: what its
/// last row does not need is lost, an eighth on average.
constexpr int rows_a_slab(std::int64_t rows, std::int64_t warps)
{
    const std::int64_t n = rows / (4 * warps);
    return static_cast<int>(n < 1 ? 1 : n > 16 ? 16 : n);
}
/// Words to keep room for, where the rows of C have at most `bound`: in graphs, too, rows meet the same words again and
/// again.
constexpr std::int64_t pool_words(std::int64_t bound) { return bound / 4 * 3 + bound / 8; }

/// Whether orders of rows with few products are kept. \param bytes  of them all; \param workspace  bytes that are taken
/// already, many where most rows are empty; \param least  bytes that A, B and C take at least. C mostly takes several
/// times its part of that, so that half as much again does not make these orders what memory is short of.
constexpr bool worth_keeping_orders(std::int64_t bytes, std::int64_t workspace, std::int64_t least)
{
    return workspace + bytes <= least / 2 * 3;
}

/// When some rows are counted before the others, to see how many words all will take.
struct SamplePolicy {
    std::int64_t least_bound = 8'000'000;  ///< words; of fewer it takes longer than it spares
    std::int64_t rows = 2048;              ///< about so many,
    std::int64_t least_stride = 16;        ///< of so many times as many at least
    std::int64_t fewest_rows = 32;         ///< fewer say little
    std::int32_t most_products = 1 << 15;  ///< of a row; those that have more would keep all waiting
    double margin = 1.25;                  ///< for what warps take and do not use, and for chance
    bool operator==(const SamplePolicy&) const = default;
};
inline constexpr SamplePolicy sample_policy{};

/// Whether the words of all rows, at most `bound`, may be many more than there is room for.
constexpr bool worth_sampling(std::int64_t bound, std::int64_t room, const SamplePolicy& policy = sample_policy)
{
    return bound >= policy.least_bound && room < pool_words(bound) / 2;
}

/// Every how many of so many rows one is counted.
constexpr std::int64_t sample_stride(std::int64_t rows, const SamplePolicy& policy = sample_policy)
{
    return std::max(rows / policy.rows, policy.least_stride);
}

/// Classes whose rows may also be worked on as those of the next class: same kernel, less room a row.
constexpr bool grows_into_next(StructureClass c)
{
    return c != StructureClass::none && c != StructureClass::few128 && c != StructureClass::sort256 &&
           c != StructureClass::hash4096 && c != StructureClass::bits2048 && c < StructureClass::bits4096;
}

}  // namespace rmsp::kernels::spgemm
