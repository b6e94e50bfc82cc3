#pragma once

#include <algorithm>
#include <cstdint>

#include <kernels/spgemm/numeric_classes.hpp>

/// To which class a row goes in the numeric phase.
namespace rmsp::kernels::spgemm {

/// What a block keeps in arrays of its own besides.
inline constexpr std::int64_t block_arrays_bytes = 10 << 10;

/// Class of a row whose ranks are in shared memory, with so much room; search: it would have too many parts.
constexpr NumericClass rank_class(const PartCut& cut, std::int64_t room, const NumericLimits& limits)
{
    using N = NumericClass;
    const auto fits = [room](N c) { return numeric_capacity(c) <= room; };
    const N least = cut.packed ? N::packed24 : N::rank24;
    const N most = cut.packed ? N::packed216 : N::rank216;
    for (int c = static_cast<int>(least); c <= static_cast<int>(most); ++c) {
        if (cut.total <= numeric_capacity(static_cast<N>(c)) && fits(static_cast<N>(c))) {
            return static_cast<N>(c);
        }
    }
    const N parts = !cut.packed                ? fits(N::parts96) ? N::parts96 : N::parts48
                    : fits(N::packed_parts216) ? N::packed_parts216
                                               : N::packed_parts96;
    return fits(parts) && cut.parts(numeric_capacity(parts)) <= limits.most_parts ? parts : N::search;
}

/// Time that a row takes of a multiprocessor, in steps of a thread over a product: each block waits a while besides,
/// and the fewer of them have room, the less others hide of that. A look-up costs about the same in a table and by
/// rank, so that it is the threads that find room which decide. (Fitted to random permutations of bands of half-width
/// 111 on an H200.)
constexpr double block_time(NumericClass c, const PartCut& cut, std::int64_t products, std::int64_t shared_limit)
{
    constexpr double steps_of_waiting = 20;
    constexpr std::int64_t arrays_bytes = 8 << 10;
    const Shape shape = numeric_shape(c, cut.value_bytes);
    const int parts = is_in_parts(c) ? cut.parts(shape.bytes) : 1;
    const double steps = static_cast<double>(products) / shape.threads;
    const std::int64_t blocks = shared_limit / (shape.bytes + arrays_bytes);
    return (parts * steps_of_waiting + steps) / static_cast<double>(std::max<std::int64_t>(blocks, 1));
}

/// Class of a row that a block takes with all that it needs in shared memory, the one that takes the least time;
/// search: there is none.
constexpr NumericClass block_class(const RowBounds& row, std::int64_t words, std::int64_t entries,
                                   std::int64_t value_bytes, bool windows, bool hashes, std::int64_t shared_limit,
                                   const NumericLimits& limits)
{
    using N = NumericClass;
    const std::int64_t room = shared_limit - block_arrays_bytes;
    N best = N::search;
    double least = 0;
    const auto consider = [&](N c, const PartCut& cut) {
        if (c == N::search) {
            return;
        }
        const double time = block_time(c, cut, row.products, shared_limit);
        if (best == N::search || time < least) {
            best = c;
            least = time;
        }
    };
    const PartCut cut = part_cut(row.span_words(), words, entries, value_bytes, false);
    const PartCut packed = part_cut(row.span_words(), words, entries, value_bytes, true);
    if (windows) {
        consider(rank_class(cut, room, limits), cut);
    }
    if (windows && hashes) {
        consider(rank_class(packed, room, limits), packed);
    }
    // Words side by side take less room, unless the span is millions of words.
    if (hashes && !is_packed(best)) {
        for (const N c : {N::block_hash1024, N::block_hash2048, N::block_hash4096, N::block_hash8192}) {
            if (entries <= numeric_capacity(c)) {
                consider(block_hash_bytes(numeric_capacity(c), value_bytes) <= room ? c : N::search, cut);
                break;
            }
        }
    }
    return best;
}

/// Class of a row that a block takes with the sums in C itself, and what finds their places in shared memory, with so
/// much room; search: it does not fit.
constexpr NumericClass far_class(const RowBounds& row, std::int64_t words, bool packs, std::int64_t room)
{
    using N = NumericClass;
    const auto fitting = [room](std::int64_t bytes, N narrow, N wide) {
        const N c = bytes <= numeric_capacity(narrow) ? narrow : wide;
        return bytes <= numeric_capacity(c) && numeric_capacity(c) <= room ? c : N::search;
    };
    const PartCut packed = part_cut(row.span_words(), words, 0, 0, true);
    const N c = packs ? fitting(packed.total, N::packed_far64, N::packed_far216) : N::search;
    return c != N::search ? c : fitting(rank_bytes(row.span_words()), N::rank_far64, N::rank_far216);
}

/// Class of a row of A that a virtual warp takes: as many threads as the mean row of B that it names has entries (Kurt
/// et al., section VII). `binned`: rows are binned by products, and a row's bin says how many threads it has at most,
/// as in the code that the paper calls HybridSparse. The paper leaves the bins open: here they end at powers of 2, so
/// that each thread has 4 to 8 products.
constexpr NumericClass virtual_class(std::int64_t products, std::int64_t a_entries, VirtualWarps warps, bool binned)
{
    constexpr std::int64_t products_a_thread = 8;
    const int most = binned ? virtual_warp(products, products_a_thread, warps.least, warps.most) : warps.most;
    const int threads = virtual_warp(products, a_entries, warps.least, most);
    return threads <= 16    ? NumericClass::virtual16
           : threads <= 32  ? NumericClass::virtual32
           : threads <= 64  ? NumericClass::virtual64
           : threads <= 128 ? NumericClass::virtual128
           : threads <= 256 ? NumericClass::virtual256
                            : NumericClass::virtual512;
}

/// `a_entries`: of A in the row; `words`: of 32 columns that the row of C has entries in; `twins`: most rows that a
/// warp takes together.
constexpr NumericClass numeric_class(const RowBounds& row, std::int64_t a_entries, std::int32_t words,
                                     std::int64_t entries, std::int64_t value_bytes, int twins, Accumulator accumulator,
                                     std::int64_t shared_limit, int few, const NumericLimits& limits = {})
{
    if (entries == 0) {
        return NumericClass::none;
    }
    if (has_few(row, few)) {
        return row.products <= 8    ? NumericClass::few8
               : row.products <= 16 ? NumericClass::few16
               : row.products <= 32 ? NumericClass::few32
               : row.products <= 64 ? NumericClass::few64
                                    : NumericClass::few128;
    }
    if (accumulator == Accumulator::scatter) {
        return NumericClass::scatter;
    }
    if (by_virtual_warps(accumulator)) {
        return virtual_class(row.products, a_entries, limits.virtual_warps, accumulator == Accumulator::hybrid);
    }
    if (accumulator == Accumulator::chunks) {
        return NumericClass::chunks;
    }
    const bool windows = accumulator != Accumulator::hash;
    const bool hashes = accumulator != Accumulator::window;
    const std::int64_t span = row.span();
    // A warp takes the rows of B one after the other: a row of C with many of them would keep all others waiting.
    const bool for_a_warp =
        twins > 1 ? row.products <= limits.products_of_a_warp && a_entries <= limits.a_entries_of_a_warp
                  : row.products <= limits.products_of_a_lone_warp && a_entries <= limits.a_entries_of_a_lone_warp;
    if (for_a_warp && windows && span <= 2048 && (!hashes || span <= limits.window_columns_per_entry * entries)) {
        return span <= 256    ? NumericClass::window256
               : span <= 512  ? NumericClass::window512
               : span <= 1024 ? NumericClass::window1024
                              : NumericClass::window2048;
    }
    if (for_a_warp && hashes && entries <= most_hashed && row.span_words() <= most_hashed_span) {
        const std::int64_t bytes = hash_bytes(words, entries, value_bytes, twins);
        const std::int64_t most = twins > 1 ? numeric_capacity(NumericClass::hash65536) : limits.bytes_of_a_lone_warp;
        for (int c = static_cast<int>(NumericClass::hash512); bytes <= most; ++c) {
            if (bytes <= numeric_capacity(static_cast<NumericClass>(c))) {
                return static_cast<NumericClass>(c);
            }
        }
    }
    const NumericClass near = block_class(row, words, entries, value_bytes, windows, hashes, shared_limit, limits);
    const bool leaves = near == NumericClass::search ||
                        (is_in_parts(near) && row.products < limits.products_an_entry_of_parts * entries);
    const NumericClass far =
        windows && leaves ? far_class(row, words, hashes, shared_limit - block_arrays_bytes) : NumericClass::search;
    return far != NumericClass::search ? far : near;
}

/// Whether products are listed by entries of C for repeated values: 8 bytes each, read in less time than they take to
/// be added up again, unless rows of twins or many products an entry make that cheap. A few million are tried however
/// many an entry has (fitted to both halves of the corpus).
constexpr bool worth_listing(std::int64_t products, std::int64_t entries, std::int64_t most_products_of_a_row,
                             int most_in_group, Accumulator accumulator)
{
    constexpr std::int64_t few = std::int64_t{1} << 22;
    constexpr std::int64_t counted_in_float = 1 << 24;
    constexpr std::int64_t counted_in_32_bits = (std::int64_t{1} << 32) - 64;  // a thread reads past the last by a few
    return accumulator == Accumulator::automatic && most_in_group <= 1 &&
           (products <= 8 * entries || products <= few) && products < counted_in_32_bits &&
           most_products_of_a_row < counted_in_float;
}
/// Whether a list of entries may be added up by a few threads each. A warp takes an entry that is long, at most the
/// products of its row, and adds up about a thousandth of what the GPU does: it is to be done in a few times what the
/// others take.
constexpr bool entries_are_short(std::int64_t products, std::int64_t most_products_of_a_row)
{
    constexpr std::int64_t at_once = 4096;
    return most_products_of_a_row <= std::max(at_once, products / 200);
}
/// Products of a row that a warp at most adds up: it does one or two a nanosecond, and is to be done in a few times
/// what all others take.
constexpr std::int64_t most_products_of_lanes(std::int64_t products)
{
    constexpr std::int64_t at_once = 4096;
    return std::max(at_once, products / 1000);
}
/// Whether so few products take no time but the launch, so that no other way to their sums is faster.
constexpr bool is_launch_bound(std::int64_t products) { return products <= 1'000'000; }
/// Threads that add up an entry of the list: one for about four products, for two as long as all together are too few
/// to keep the GPU busy (fitted to both halves of the corpus).
constexpr int lanes_of_entry(std::int64_t products, std::int64_t entries)
{
    constexpr std::int64_t at_once = 1 << 17;
    int lanes = 1;
    while (lanes < 32 && products >= entries * lanes * (entries * lanes * 2 <= at_once ? 2 : 4)) {
        lanes *= 2;
    }
    return lanes;
}

/// Classes whose rows may also be worked on as those of the next class: same kernel, less room a row.
constexpr bool grows_into_next(NumericClass c)
{
    return (is_few(c) && c != NumericClass::few128) || (is_window(c) && c != NumericClass::window2048) ||
           (is_hash(c) && c != NumericClass::hash65536);
}

/// Products of rows that have classes of their own: twins are cheaper together, and who asks for an accumulator gets
/// it. Where they are the accumulator's ESC (expand, sort, compress), products alone decide.
constexpr int few_products(Accumulator accumulator)
{
    return accumulator == Accumulator::automatic ? most_few
           : accumulator == Accumulator::hybrid  ? most_few_scattered
                                                 : 0;
}
constexpr int few_products(std::int64_t twins, std::int64_t rows, int few)
{
    return worth_grouping(twins, rows) ? 0 : few;
}

/// Lanes of a warp for each row of C, if its rows of B have that many entries on average.
constexpr int lanes_a_row(std::int64_t products, std::int64_t rows_of_b)
{
    return products <= 8 * rows_of_b ? 8 : products <= 20 * rows_of_b ? 16 : 32;
}

}  // namespace rmsp::kernels::spgemm
