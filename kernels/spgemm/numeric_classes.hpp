#pragma once

#include <algorithm>
#include <cstdint>

#include <kernels/spgemm/row_policy.hpp>

/// Classes of rows in the numeric phase, which adds up the entries of C.
namespace rmsp::kernels::spgemm {

/// The numeric phase. The columns of C are known: what is looked up is a column's place among them.
enum class NumericClass : std::uint8_t {
    none,  ///< no entries
    few8,  ///< as in the symbolic phase
    few16,
    few32,
    few64,
    few128,
    window256,  ///< a warp: a sum for each of up to 256 columns side by side, and so on
    window512,
    window1024,
    window2048,
    hash512,  ///< a warp: hash table of words of 32 columns, and the sums, in 512 bytes of shared memory, and so on
    hash1024,
    hash1536,
    hash2048,
    hash3072,
    hash4096,
    hash6144,
    hash8192,
    hash12288,
    hash16384,
    hash24576,
    hash32768,
    hash65536,
    block_hash1024,  ///< a block: hash table of up to 1024 entries, and so on
    block_hash2048,
    block_hash4096,
    block_hash8192,
    rank24,  ///< a block: bitmap with the entries before each word, and the sums, in 24 KiB of shared memory, and so on
    rank48,
    rank96,
    rank216,
    parts48,  ///< rows that need more: a block for each range of their columns that fits so many KiB
    parts96,
    packed24,  ///< a block: words that are there side by side, found by a rank of theirs, and the sums, in 24 KiB, ...
    packed48,
    packed96,
    packed216,
    packed_parts96,  ///< rows that need more, as parts96
    packed_parts216,
    rank_far64,  ///< the bitmap in shared memory, the sums in C itself
    rank_far216,
    packed_far64,  ///< the words that are there, and so on
    packed_far216,
    chunks,     ///< a block: a sum for each of up to so many columns side by side, one such piece of the row after the
                ///< other
    search,     ///< a block: the columns of C are searched, the sums in C itself
    scatter,    ///< a block: places in a dense row in global memory (scatter vector), the sums in C itself
    virtual16,  ///< 16 threads, a virtual warp: a scatter vector, the sums in C itself, and so on
    virtual32,
    virtual64,
    virtual128,
    virtual256,
    virtual512,
    count
};

/// Which classes rows may go to. `hybrid`: those of few products to classes few, the others to virtual warps.
enum class Accumulator : std::uint8_t { automatic, scatter, virtual_warps, hybrid, hash, window, chunks };
constexpr bool by_virtual_warps(Accumulator accumulator)
{
    return accumulator == Accumulator::virtual_warps || accumulator == Accumulator::hybrid;
}

/// Threads that a virtual warp may have: powers of 2 from 16 to 512.
struct VirtualWarps {
    int least = 16;
    int most = 128;
    bool operator==(const VirtualWarps&) const = default;
};

struct NumericLimits {
    std::int64_t window_columns_per_entry = 4;  ///< emptier windows spoil more of the cache than a hash table costs
    std::int64_t products_of_a_warp = most_products_of_a_warp;
    /// A row, or group of twins, with more entries of A takes a block: short rows of B are taken one after the other.
    std::int64_t a_entries_of_a_warp = 256;
    std::int64_t products_of_a_lone_warp = 1 << 13;  ///< a row without twins that has more takes a block
    std::int64_t a_entries_of_a_lone_warp = 128;     ///< a row without twins that has more entries of A takes a block
    std::int64_t bytes_of_a_lone_warp = 8192;     ///< a row without twins that needs more shared memory takes a block
    std::int64_t most_parts = 64;                 ///< of a row's columns; beyond, sums in global memory cost less,
    std::int64_t products_an_entry_of_parts = 2;  ///< as those of a row in parts do that has fewer products an entry
    VirtualWarps virtual_warps{};
    bool operator==(const NumericLimits&) const = default;
};

/// Of a matrix whose rows of C have so many products and entries of A on average: a row that takes a warp too long
/// takes one several times as long as others.
constexpr NumericLimits numeric_limits(std::int64_t mean_products, std::int64_t mean_a_entries)
{
    constexpr std::int64_t times = times_of_a_long_row;
    NumericLimits limits;
    limits.products_of_a_lone_warp =
        std::min(std::max(limits.products_of_a_lone_warp, times * mean_products), limits.products_of_a_warp);
    limits.a_entries_of_a_warp = std::max(limits.a_entries_of_a_warp, times * mean_a_entries);
    limits.a_entries_of_a_lone_warp = std::max(limits.a_entries_of_a_lone_warp, times * mean_a_entries);
    return limits;
}

constexpr bool is_few(NumericClass c) { return c >= NumericClass::few8 && c <= NumericClass::few128; }
constexpr bool is_window(NumericClass c) { return c >= NumericClass::window256 && c <= NumericClass::window2048; }
constexpr bool is_hash(NumericClass c) { return c >= NumericClass::hash512 && c <= NumericClass::hash65536; }
constexpr bool is_block_hash(NumericClass c)
{
    return c >= NumericClass::block_hash1024 && c <= NumericClass::block_hash8192;
}
/// With ranks in shared memory.
constexpr bool is_rank(NumericClass c) { return c >= NumericClass::rank24 && c <= NumericClass::parts96; }
constexpr bool is_packed(NumericClass c) { return c >= NumericClass::packed24 && c <= NumericClass::packed_parts216; }
constexpr bool is_in_parts(NumericClass c)
{
    return (c >= NumericClass::parts48 && c <= NumericClass::parts96) ||
           (c >= NumericClass::packed_parts96 && c <= NumericClass::packed_parts216);
}
constexpr bool is_rank_far(NumericClass c) { return c == NumericClass::rank_far64 || c == NumericClass::rank_far216; }
constexpr bool is_packed_far(NumericClass c)
{
    return c == NumericClass::packed_far64 || c == NumericClass::packed_far216;
}
constexpr bool is_virtual(NumericClass c) { return c >= NumericClass::virtual16 && c <= NumericClass::virtual512; }

/// Products of the classes few, columns of a window, entries of a block's hash table; for the others bytes of shared
/// memory.
constexpr std::int64_t numeric_capacity(NumericClass c)
{
    using N = NumericClass;
    constexpr std::int64_t kib = 1024;
    switch (c) {
        case N::few8:
            return 8;
        case N::few16:
            return 16;
        case N::few32:
            return 32;
        case N::few64:
            return 64;
        case N::few128:
            return 128;
        case N::window256:
            return 256;
        case N::window512:
        case N::hash512:
            return 512;
        case N::window1024:
        case N::hash1024:
        case N::block_hash1024:
            return 1024;
        case N::hash1536:
            return 1536;
        case N::window2048:
        case N::hash2048:
        case N::block_hash2048:
            return 2048;
        case N::hash3072:
            return 3072;
        case N::hash4096:
        case N::block_hash4096:
            return 4096;
        case N::hash6144:
            return 6144;
        case N::hash8192:
        case N::block_hash8192:
            return 8192;
        case N::hash12288:
            return 12288;
        case N::hash16384:
            return 16384;
        case N::rank24:
        case N::packed24:
        case N::hash24576:
            return 24 * kib;
        case N::hash32768:
            return 32 * kib;
        case N::hash65536:
            return 64 * kib;
        case N::rank48:
        case N::packed48:
        case N::parts48:
            return 48 * kib;
        case N::rank96:
        case N::parts96:
        case N::packed96:
        case N::packed_parts96:
        case N::chunks:
            return 96 * kib;
        case N::rank216:
        case N::packed216:
        case N::packed_parts216:
        case N::packed_far216:
        case N::rank_far216:
            return 216 * kib;
        case N::packed_far64:
        case N::rank_far64:
            return 64 * kib;
        default:
            return 0;
    }
}

/// Entries of a row that a warp's hash table takes: 11 bits of a slot say how many come before its word, the others how
/// far it is from the row's first.
inline constexpr int place_bits = 11;
inline constexpr std::int64_t most_hashed = std::int64_t{1} << place_bits;
inline constexpr std::int64_t most_hashed_span = (std::int64_t{1} << (32 - place_bits)) - 1;  ///< in words
inline constexpr std::int64_t word_slot_bytes = 8;
inline constexpr std::int64_t column_slot_bytes = 8;

/// Slots of a warp's hash table, at least so many a word: small tables have room for more, so that fewer look-ups meet
/// another word.
constexpr std::int32_t slots_a_word(std::int32_t words) { return words <= 64 ? 4 : 2; }
constexpr std::int32_t word_slots(std::int32_t words)
{
    std::int32_t slots = 16;
    while (slots < slots_a_word(words) * words) {
        slots *= 2;
    }
    return slots;
}
/// Shared memory of a row, or group of twins, that is added up in a warp's hash table.
constexpr std::int64_t hash_bytes(std::int32_t words, std::int64_t entries, std::int64_t value_bytes, int twins)
{
    return word_slots(words) * word_slot_bytes + entries * value_bytes * twins;
}
/// Shared memory of a row that is added up in a block's hash table, with two slots an entry.
constexpr std::int64_t block_hash_bytes(std::int64_t entries, std::int64_t value_bytes)
{
    return entries * (2 * column_slot_bytes + value_bytes);
}
/// Shared memory of bits and first place of each word of 32 columns.
constexpr std::int64_t rank_bytes(std::int64_t span_words) { return span_words * 8; }

/// A row whose ranks and sums do not fit together is cut into parts, ranges of its words with about as many bytes of
/// both: word w begins a part if as many bytes belong to those before it as to the parts before.
struct PartCut {
    std::int64_t total;  ///< bytes of the row
    std::int32_t value_bytes;
    bool packed;  ///< ranks of the words that are there, and of 32 words of the span, in place of all words of it
    /// Of the words before one that is `offset` words behind the row's first, of which `there` are there, with so many
    /// entries before it.
    constexpr std::int64_t bytes(std::int64_t offset, std::int64_t there, std::int64_t before) const
    {
        return rank_bytes(packed ? (offset + 31) / 32 + there : offset) + before * value_bytes;
    }
    constexpr std::int64_t begin(int part, int parts) const { return total * part / parts; }
    /// So many that each fits a capacity: a part may have one word, with 32 entries, more than its share.
    constexpr int parts(std::int64_t capacity) const
    {
        const std::int64_t share = capacity - 2 * bytes(1, 1, 32);
        return static_cast<int>(total <= capacity ? 1 : (total + share - 1) / share);
    }
};
constexpr PartCut part_cut(std::int64_t span_words, std::int64_t words, std::int64_t entries, std::int64_t value_bytes,
                           bool packed)
{
    PartCut cut{0, static_cast<std::int32_t>(value_bytes), packed};
    cut.total = cut.bytes(span_words, words, entries);
    return cut;
}

/// Threads of a block whose warps each take rows of their own: fewer where a row needs much shared memory, so that
/// little of it is left over.
inline constexpr int most_threads_of_warps = 128;
constexpr int threads_of_warps(std::int64_t bytes_a_row, int lanes)
{
    int threads = most_threads_of_warps;
    while (threads > 32 && bytes_a_row * (threads / lanes) > 32 << 10) {
        threads /= 2;
    }
    return threads;
}

/// Lanes of a warp for a row of a class, of those that rows of this matrix have: large rows have a warp each.
constexpr int lanes_of_class(NumericClass c, int lanes)
{
    return numeric_capacity(c) > (is_hash(c) ? 2048 : 256) ? 32 : lanes;
}

/// `twins`: most rows of A that a warp takes together; `lanes`: of a row, where a class is worked on by warps.
constexpr Shape numeric_shape(NumericClass c, std::int64_t value_bytes, int twins = 1, int lanes = 32)
{
    const std::int64_t capacity = numeric_capacity(c);
    if (is_window(c) || is_hash(c)) {
        lanes = lanes_of_class(c, lanes);
        const std::int64_t bytes = is_window(c) ? capacity * value_bytes * twins : capacity;
        return {threads_of_warps(bytes, lanes), lanes, bytes};
    }
    const std::int64_t bytes = is_block_hash(c) ? block_hash_bytes(capacity, value_bytes) : capacity;
    // About 32 warps on a multiprocessor, however much of its memory a row takes.
    const int threads = is_rank_far(c) || is_packed_far(c) ? 1024
                        : c >= NumericClass::chunks        ? 512
                        : bytes <= 24 << 10                ? 128
                        : bytes <= 48 << 10                ? 256
                        : bytes <= 96 << 10                ? 512
                                                           : 1024;
    return {threads, threads, bytes};
}

}  // namespace rmsp::kernels::spgemm
