#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <kernels/spgemm/accumulators.hpp>
#include <kernels/spgemm/launch_policy.hpp>
#include <kernels/spgemm/numeric_policy.hpp>
#include <kernels/spgemm/row_policy.hpp>
#include <kernels/spgemm/structure_policy.hpp>

namespace rmsp::kernels::spgemm {
namespace {

constexpr std::int64_t h200_shared = 227 << 10;
constexpr std::int64_t a100_shared = 163 << 10;
constexpr std::int64_t least_shared = 99 << 10;

RowBounds row(std::int32_t first, std::int32_t last, std::int32_t words, std::int32_t products)
{
    return {first, last, words, products};
}

TEST(SpgemmPolicy, SpanOfARow)
{
    constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
    EXPECT_EQ(row(most, -1, 0, 0).span(), 0);
    EXPECT_EQ(row(most, -1, 0, 0).span_words(), 0);
    EXPECT_EQ(row(31, 32, 2, 2).span(), 2);
    EXPECT_EQ(row(31, 32, 2, 2).span_words(), 2);
    EXPECT_EQ(row(0, most, 2, 2).span(), std::int64_t{1} << 31);
    EXPECT_EQ(row(0, most, 2, 2).span_words(), 1 << 26);
}

TEST(SpgemmPolicy, SampledRowsAreFew)
{
    EXPECT_FALSE(worth_sampling(7'999'999, 0));
    EXPECT_TRUE(worth_sampling(8'000'000, 3'499'999));
    EXPECT_FALSE(worth_sampling(8'000'000, 3'500'000));
    EXPECT_EQ(sample_stride(100), 16);
    EXPECT_EQ(sample_stride(100'000), 48);
    EXPECT_EQ(sample_stride(1'000'000'000), 488'281);
    EXPECT_TRUE(worth_keeping_orders(100, 50, 100) && !worth_keeping_orders(101, 50, 100));
}

TEST(SpgemmPolicy, StructureClassHoldsTheRow)
{
    for (const std::int64_t shared : {least_shared, a100_shared, h200_shared}) {
        for (const std::int32_t span : {1, 33, 1000, 1025, 20'000, 70'000, 140'000, 1'000'000, 2'000'000'000}) {
            for (const std::int32_t words : {0, 1, 31, 32, 33, 64, 65, 128, 256, 257, 4096, 5000, 10'000'000}) {
                const RowBounds r = row(17, 16 + span, words, words);
                const StructureClass c = structure_class(r, shared, 0);
                const int capacity = sorts(c) || hashes(c) ? structure_capacity(c) : bitmap_words(c, r.span_words());
                const Shape shape = structure_shape(c, capacity);
                SCOPED_TRACE(testing::Message() << span << " columns, " << words << " words, class " << int(c));
                EXPECT_EQ(c == StructureClass::none, words == 0);
                if (words == 0) {
                    continue;
                }
                EXPECT_LE(shape.bytes * (shape.threads / shape.threads_a_row), shared - (16 << 10));
                if (sorts(c)) {
                    EXPECT_LE(words, structure_capacity(c));
                    // Distance and slot in one 32-bit key.
                    EXPECT_LE(r.span_words() * 2 * structure_capacity(c), std::int64_t{1} << 32);
                } else if (hashes(c)) {
                    EXPECT_LE(words, structure_capacity(c));
                    EXPECT_EQ(structure_capacity(c) & (structure_capacity(c) - 1), 0);  // it is sorted as a whole
                } else {
                    EXPECT_TRUE(r.span_words() <= capacity || c == widest_bitmap(shared));
                    EXPECT_LE(capacity, structure_capacity(c));
                }
            }
        }
    }
}

TEST(SpgemmPolicy, WordsFarApartTakeATable)
{
    // A badly numbered 27-point stencil of a million rows: 27 rows of B of 27 words each.
    EXPECT_EQ(structure_class(row(0, 999'999, 729, 729), h200_shared, most_few), StructureClass::hash1024);
    EXPECT_EQ(structure_class(row(0, 999'999, 300, 400), a100_shared, most_few), StructureClass::hash512);
    EXPECT_EQ(structure_class(row(0, 999'999, 2048, 5000), h200_shared, most_few), StructureClass::hash2048);
    EXPECT_EQ(structure_class(row(0, 1'599'999, 4096, 5000), h200_shared, most_few), StructureClass::hash4096);
    // More words than a table holds, or no room for so large a one.
    EXPECT_EQ(structure_class(row(0, 999'999, 4097, 5000), h200_shared, most_few), StructureClass::bits51200);
    EXPECT_EQ(structure_class(row(0, 999'999, 4096, 5000), least_shared, most_few), StructureClass::bits16384);
    // Where a bitmap is not much larger it needs no sorting.
    EXPECT_EQ(structure_class(row(0, 100'000, 300, 400), h200_shared, most_few), StructureClass::bits4096);
    EXPECT_EQ(structure_class(row(0, 999'999, 4096, 5000), h200_shared, most_few), StructureClass::bits51200);
    EXPECT_EQ(structure_class(row(0, 500'000, 2000, 2000), h200_shared, most_few), StructureClass::bits16384);
    // One pass over B in place of several.
    EXPECT_EQ(structure_class(row(0, 9'999'999, 3000, 3000), h200_shared, most_few), StructureClass::hash4096);
    for (const int capacity : {512, 1024, 2048, 4096}) {
        const StructureClass c = structure_class(row(0, 9'999'999, capacity, capacity), h200_shared, 0);
        EXPECT_TRUE(hashes(c));
        EXPECT_EQ(structure_capacity(c), capacity);
        EXPECT_EQ(structure_shape(c, capacity).bytes, 24 * capacity);
        // A bit for each word of the span says where a word comes, unless that takes more than sorting does.
        EXPECT_EQ(table_ranks(c, 31'250), 977);
        EXPECT_EQ(table_ranks(c, 1), 1);
        const int most = std::max(capacity, 2048);
        EXPECT_EQ(table_ranks(c, 32 * most), most);
        EXPECT_EQ(table_ranks(c, 32 * most + 1), 0);
        EXPECT_LE(table_bytes(capacity, most), std::max<std::int64_t>(24 * capacity, 32 << 10));
    }
    EXPECT_FALSE(grows_into_next(StructureClass::sort256));
    EXPECT_FALSE(grows_into_next(StructureClass::hash4096));
}

TEST(SpgemmPolicy, FewProductsAreSortedAsOneKeyEach)
{
    for (const std::int32_t products : {1, 8, 9, 16, 17, 32, 33, 64, 65, 128, 129}) {
        for (const std::int32_t span : {1, 64, (1 << 17) - 1, 1 << 17, (1 << 25) - 1, 1 << 25, 2'000'000'000}) {
            const RowBounds r = row(3, 2 + span, products, products);
            const StructureClass structure = structure_class(r, h200_shared, most_few);
            const NumericClass numeric = numeric_class(r, 9, 0, 1, 8, 1, Accumulator::automatic, h200_shared, most_few);
            SCOPED_TRACE(testing::Message() << products << " products, " << span << " columns");
            EXPECT_EQ(is_few(structure), products <= 128 && span < 1 << 25);
            // A quarter as many words as products: no longer scattered.
            const RowBounds together{r.first, r.last, std::max(products / 4, 1), products};
            EXPECT_EQ(is_few(structure_class(together, h200_shared, most_few)), products <= 64 && span < 1 << 25);
            EXPECT_EQ(is_few(numeric), is_few(structure));
            if (is_few(structure)) {
                const int capacity = structure_capacity(structure);
                EXPECT_EQ(capacity, numeric_capacity(numeric));
                EXPECT_LE(products, capacity);
                EXPECT_LT((r.span() - 1) * capacity + products - 1, (std::int64_t{1} << 32) - 1);
            }
            EXPECT_FALSE(is_few(structure_class(r, h200_shared, 0)));
        }
    }
    EXPECT_EQ(few_products(Accumulator::automatic), most_few);
    EXPECT_EQ(few_products(Accumulator::hash), 0);
    EXPECT_EQ(few_products(Accumulator::virtual_warps), 0);
    EXPECT_EQ(few_products(49, 100, most_few), most_few);
    EXPECT_EQ(few_products(50, 100, most_few), 0);
}

TEST(SpgemmPolicy, ExtentsKeepPlaceAndCount)
{
    for (const std::int64_t place : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1} << 35}) {
        for (const std::int32_t count : {0, 1, 1 << 26}) {
            const Extent stored(place, count);
            EXPECT_EQ(stored.place(), place);
            EXPECT_EQ(stored.count(), count);
        }
    }
}

TEST(SpgemmPolicy, NumericClassHoldsTheRow)
{
    for (const std::int64_t shared : {least_shared, a100_shared, h200_shared}) {
        for (const Accumulator accumulator : {Accumulator::automatic, Accumulator::hash, Accumulator::window}) {
            for (const std::int64_t bytes : {4, 8}) {
                for (const std::int32_t span : {1, 256, 257, 2048, 2049, 60'000, 800'000, 1'000'000'000}) {
                    for (const std::int64_t entries : {0, 1, 32, 33, 1024, 1025, 8192, 8193, 65536, 65537, 300'000}) {
                        if (entries > span) {
                            continue;
                        }
                        const auto words = static_cast<std::int32_t>((entries + 2) / 3);
                        for (const int twins : {1, most_twins}) {
                            const RowBounds r = row(5, 4 + span, 1, 1000);
                            const NumericClass c =
                                numeric_class(r, 9, words, entries, bytes, twins, accumulator, shared, 0);
                            const std::int64_t capacity = numeric_capacity(c);
                            SCOPED_TRACE(testing::Message()
                                         << span << " columns, " << entries << " entries, class " << int(c));
                            EXPECT_EQ(c == NumericClass::none, entries == 0);
                            EXPECT_NE(c, NumericClass::scatter);
                            const Shape shape = numeric_shape(c, bytes);
                            EXPECT_LE(shape.bytes * (shape.threads / shape.threads_a_row), shared - (8 << 10));
                            if (is_window(c)) {
                                EXPECT_LE(span, capacity);
                                EXPECT_NE(accumulator, Accumulator::hash);
                            } else if (is_hash(c)) {
                                EXPECT_LE(r.span_words(), most_hashed_span);
                                EXPECT_LE(entries, most_hashed);
                                EXPECT_LE(word_slots(words) * 8 + entries * bytes * twins, capacity);
                                EXPECT_GE(word_slots(words), 2 * words);
                                EXPECT_NE(accumulator, Accumulator::window);
                            } else if (is_block_hash(c)) {
                                EXPECT_LE(entries, capacity);
                                EXPECT_NE(accumulator, Accumulator::window);
                            } else if (is_rank(c)) {
                                const int parts = part_cut(r.span_words(), 0, entries, bytes, false).parts(capacity);
                                EXPECT_EQ(parts > 1, is_in_parts(c));
                                EXPECT_LE(parts, NumericLimits{}.most_parts);
                            } else if (is_packed(c)) {
                                const PartCut cut = part_cut(r.span_words(), words, entries, bytes, true);
                                EXPECT_EQ(cut.parts(capacity) > 1, is_in_parts(c));
                                EXPECT_LE(cut.parts(capacity), NumericLimits{}.most_parts);
                                EXPECT_EQ(accumulator, Accumulator::automatic);
                            } else if (is_packed_far(c)) {
                                EXPECT_LE(part_cut(r.span_words(), words, 0, 0, true).total, capacity);
                                EXPECT_EQ(accumulator, Accumulator::automatic);
                            } else if (is_rank_far(c)) {
                                EXPECT_LE(rank_bytes(r.span_words()), capacity);
                            }
                        }
                    }
                }
            }
        }
    }
    EXPECT_EQ(numeric_class(row(0, 99, 9, 9), 3, 4, 9, 8, 1, Accumulator::scatter, h200_shared, 0),
              NumericClass::scatter);
    EXPECT_EQ(numeric_class(row(0, 99, 9, 9), 3, 4, 9, 8, 1, Accumulator::chunks, h200_shared, 0),
              NumericClass::chunks);
    EXPECT_TRUE(
        is_hash(numeric_class(row(0, 9999, 9, 900), 128, 90, 300, 8, 1, Accumulator::automatic, h200_shared, 0)));
    EXPECT_FALSE(
        is_hash(numeric_class(row(0, 9999, 9, 900), 129, 90, 300, 8, 1, Accumulator::automatic, h200_shared, 0)));
    EXPECT_TRUE(
        is_hash(numeric_class(row(0, 9999, 9, 900), 129, 90, 300, 8, 2, Accumulator::automatic, h200_shared, 0)));
    EXPECT_FALSE(
        is_hash(numeric_class(row(0, 9999, 9, 900), 513, 90, 300, 8, 2, Accumulator::automatic, h200_shared, 0)));
}

TEST(SpgemmPolicy, PartsOfARowFit)
{
    std::mt19937 random(1);
    for (int round = 0; round < 200; ++round) {
        // Denser at the begin in every other round, as rows of graphs are.
        const std::int32_t span = 1 + static_cast<std::int32_t>(random() % 100'000);
        const double density = 1.0 / static_cast<double>(1 << (random() % 8));
        std::vector<std::int32_t> of_words((static_cast<std::size_t>(span) + 31) / 32, 0);
        std::int64_t entries = 0;
        for (std::int32_t column = 0; column < span; ++column) {
            const double there = round % 2 == 0 ? density : density / (1 + 16.0 * column / span);
            if (column == 0 || column + 1 == span || static_cast<double>(random()) < there * 4294967296.0) {
                ++of_words[static_cast<std::size_t>(column) / 32];
                ++entries;
            }
        }
        const auto words = static_cast<std::int64_t>(of_words.size());
        const std::int64_t there = words - std::count(of_words.begin(), of_words.end(), 0);
        for (const std::int64_t value_bytes : {4, 8}) {
            for (const bool packed : {false, true}) {
                const PartCut cut = part_cut(words, there, entries, value_bytes, packed);
                for (const std::int64_t capacity : {std::int64_t{2} << 10, numeric_capacity(NumericClass::parts96)}) {
                    const int parts = cut.parts(capacity);
                    EXPECT_EQ(parts > 1, cut.total > capacity);
                    // What a part has, and between which words.
                    std::vector<std::int64_t> bytes(static_cast<std::size_t>(parts), 0);
                    std::vector<std::int64_t> first(bytes.size(), -1);
                    std::vector<std::int64_t> last(bytes.size(), -1);
                    std::int64_t there_before = 0;
                    std::int64_t before = 0;
                    std::size_t part = 0;
                    for (std::int64_t w = 0; w < words; ++w) {
                        const std::int32_t of_word = of_words[static_cast<std::size_t>(w)];
                        if (packed && of_word == 0) {
                            continue;
                        }
                        while (part + 1 < bytes.size() &&
                               cut.bytes(w, there_before, before) >= cut.begin(static_cast<int>(part) + 1, parts)) {
                            ++part;
                        }
                        bytes[part] += rank_bytes(1) + of_word * value_bytes;
                        first[part] = first[part] < 0 ? w : first[part];
                        last[part] = w;
                        ++there_before;
                        before += of_word;
                    }
                    for (std::size_t i = 0; i < bytes.size(); ++i) {
                        if (packed && first[i] >= 0) {
                            bytes[i] += rank_bytes((last[i] - first[i] + 1 + 31) / 32);
                        }
                        EXPECT_LE(bytes[i], capacity)
                            << span << " columns, " << entries << " entries, " << parts << " parts, packed " << packed;
                    }
                }
            }
        }
    }
    EXPECT_EQ(part_cut(10, 0, 10, 8, false).parts(160), 1);
    EXPECT_EQ(part_cut(1 << 26, 0, std::int64_t{1} << 31, 8, false).parts(96 << 10), 181'198);
    EXPECT_EQ(part_cut(320, 10, 10, 8, true).parts(240), 1);
}

/// Random permutations of bands: what lies in shared memory decides how many threads wait for it.
TEST(SpgemmPolicy, TablesOrRanksByWhatEachTakes)
{
    const auto of_band = [](std::int32_t half) {
        const std::int32_t width = 2 * half + 1;
        const NumericLimits limits = numeric_limits(width * width, width);
        return numeric_class(row(0, 99'999, width * width, width * width), width, 4 * half * 95 / 100, 4 * half + 1, 8,
                             1, Accumulator::automatic, h200_shared, most_few, limits);
    };
    for (const std::int32_t half : {79, 95, 111}) {
        EXPECT_EQ(of_band(half), NumericClass::rank48) << half;
    }
    const auto of_graph = [](std::int32_t products, std::int32_t words, std::int64_t entries,
                             Accumulator accumulator = Accumulator::automatic) {
        return numeric_class(row(0, (1 << 18) - 1, products, products), 4, words, entries, 8, 1, accumulator,
                             h200_shared, most_few);
    };
    EXPECT_EQ(of_graph(1000, 900, 950), NumericClass::packed24);
    EXPECT_EQ(of_graph(1000, 900, 950, Accumulator::hash), NumericClass::block_hash1024);
    EXPECT_EQ(of_graph(2000, 1700, 1900), NumericClass::packed48);
    EXPECT_EQ(of_graph(2000, 1700, 1900, Accumulator::hash), NumericClass::block_hash2048);
    EXPECT_EQ(of_graph(20'000, 5000, 10'000), NumericClass::rank216);
    EXPECT_EQ(of_graph(20'000, 5000, 10'000, Accumulator::window), NumericClass::rank216);
    // In parts where rows of B are read again for many products an entry, else in C.
    EXPECT_TRUE(is_in_parts(of_graph(1'000'000, 8000, 100'000)));
    EXPECT_EQ(of_graph(199'999, 7900, 100'000), NumericClass::packed_far64);
    EXPECT_EQ(of_graph(199'999, 7900, 100'000, Accumulator::window), NumericClass::rank_far64);
    const auto of_million = [](std::int32_t products, std::int32_t words, std::int64_t entries) {
        return numeric_class(row(0, 999'999, products, products), 4, words, entries, 8, 1, Accumulator::automatic,
                             h200_shared, most_few);
    };
    EXPECT_EQ(of_million(20'000, 7400, 18'000), NumericClass::packed216);
    EXPECT_EQ(of_million(90'000, 20'000, 30'000), NumericClass::packed_parts216);
    EXPECT_EQ(of_million(36'000, 20'000, 35'000), NumericClass::packed_far216);
}

TEST(SpgemmPolicy, RowsThatAreSpreadHaveClassesThatLeaveThemOut)
{
    constexpr std::int64_t rows = 1'000'000;
    EXPECT_EQ(spread_above(1000, rows, 132, 1), 1 << 14);
    EXPECT_EQ(spread_above(132'000'000, rows, 132, 1), 1'000'000);
    EXPECT_EQ(spread_above(132'000'000, rows, 132, 2), 500'000);
    EXPECT_EQ(spread_above(std::int64_t{1} << 60, rows, 132, 2), most_products_unspread);
    // Rows that are as long as all others are spread where they leave multiprocessors without work.
    EXPECT_EQ(spread_above(132'000'000, 131, 132, 2), 500'000);
    EXPECT_EQ(spread_above(132'000'000, 132, 132, 2), 4'000'000);
    // As many rows as can have more than that.
    EXPECT_EQ(most_spread(132, 1), 132);
    EXPECT_EQ(most_spread(132, 2), 264);
    // No row that a warp has is spread.
    for (const std::int64_t products : {1000, 10'000'000, 100'000'000}) {
        for (const std::int64_t few_rows : {1, 10, 1000}) {
            const NumericLimits limits = numeric_limits(products / few_rows, 9);
            EXPECT_GE(spread_above(products, few_rows, 132, parts_of_a_share.front()), limits.products_of_a_lone_warp);
        }
    }
    for (const std::int32_t span : {100, 1 << 20, std::numeric_limits<std::int32_t>::max()}) {
        for (const std::int32_t words : {1 << 12, (1 << 12) + 1, 1 << 24}) {
            const RowBounds row{0, span - 1, words, 1 << 25};
            const std::int32_t above = spread_above(1, rows, 132, 2);
            EXPECT_EQ(is_spread(row, above), words > 1 << 12);
            EXPECT_FALSE(is_spread(row, most_products_unspread));
            if (!is_spread(row, above)) {
                continue;
            }
            const StructureClass structure = structure_class(row, 227 << 10, most_few);
            EXPECT_FALSE(is_few(structure) || sorts(structure) || hashes(structure));
            const Shape shape = structure_shape(structure, structure_capacity(structure));
            EXPECT_GT(shape.threads_a_row, 32);
            for (const std::int64_t entries : {std::int64_t{1}, std::int64_t{span}}) {
                const NumericClass numeric =
                    numeric_class(row, 9, words, entries, 8, 1, Accumulator::automatic, 227 << 10, most_few);
                EXPECT_FALSE(is_few(numeric) || is_window(numeric) || is_hash(numeric));
            }
        }
    }
}

TEST(SpgemmPolicy, TwinsOfAWarpHaveRoom)
{
    for (int i = 1; i < static_cast<int>(NumericClass::count); ++i) {
        const auto c = static_cast<NumericClass>(i);
        if (is_window(c) || is_hash(c)) {
            const Shape shape = numeric_shape(c, 8, most_twins);
            EXPECT_LE(shape.bytes * (shape.threads / shape.threads_a_row), h200_shared - (8 << 10)) << i;
        }
    }
    for (const int group : {2, 3, 4}) {
        EXPECT_EQ(twin_tile % group, 0);
    }
}

TEST(SpgemmPolicy, LongRowsAreThoseLongerThanOthers)
{
    const NumericLimits few = numeric_limits(10, 3);
    EXPECT_EQ(few, NumericLimits{});
    const NumericLimits many = numeric_limits(50'000, 223);
    EXPECT_EQ(many.products_of_a_lone_warp, many.products_of_a_warp);
    EXPECT_EQ(many.a_entries_of_a_lone_warp, 4 * 223);
}

TEST(SpgemmPolicy, ListsProductsWhereReadingThemIsLess)
{
    constexpr std::int64_t million = 1'000'000;
    constexpr Accumulator automatic = Accumulator::automatic;
    EXPECT_TRUE(worth_listing(30 * million, 10 * million, 500, 1, automatic));
    EXPECT_FALSE(worth_listing(30 * million, 10 * million, 500, 3, automatic));
    EXPECT_FALSE(worth_listing(30 * million, 10 * million, 500, 1, Accumulator::hash));
    EXPECT_FALSE(worth_listing(90 * million, 10 * million, 500, 1, automatic));
    EXPECT_FALSE(worth_listing(5000 * million, 1000 * million, 500, 1, automatic));
    EXPECT_FALSE(worth_listing(30 * million, 10 * million, 20 * million, 1, automatic));
}

TEST(SpgemmPolicy, SlabsLoseLittle)
{
    EXPECT_EQ(rows_a_slab(100, 8448), 1);
    EXPECT_EQ(rows_a_slab(140'000, 8448), 4);
    EXPECT_EQ(rows_a_slab(100'000'000, 8448), 16);
    EXPECT_GE(pool_words(1000), 750);
    EXPECT_LE(pool_words(1000), 1000);
}

TEST(SpgemmPolicy, VirtualWarpTakesARowOfMeanLengthInOneStep)
{
    EXPECT_EQ(virtual_warp(0, 0), 1);
    EXPECT_EQ(virtual_warp(10, 10), 1);
    EXPECT_EQ(virtual_warp(11, 10), 2);
    EXPECT_EQ(virtual_warp(80, 10), 8);
    EXPECT_EQ(virtual_warp(81, 10), 16);
    EXPECT_EQ(virtual_warp(1'000'000, 10), 32);
    EXPECT_EQ(virtual_warp(10, 10, 16, 512), 16);
    EXPECT_EQ(virtual_warp(1'000'000, 10, 16, 512), 512);
    EXPECT_EQ(virtual_warp(std::int64_t{1} << 31, 1, 64, 64), 64);
}

TEST(SpgemmPolicy, EachVirtualWarpHasAClass)
{
    using N = NumericClass;
    const std::array all{N::virtual16, N::virtual32, N::virtual64, N::virtual128, N::virtual256, N::virtual512};
    int threads = 16;
    for (const N c : all) {
        EXPECT_TRUE(is_virtual(c));
        EXPECT_FALSE(grows_into_next(c));  // its rows would no longer have the threads they want
        EXPECT_EQ(virtual_class(1000, 1, {threads, threads}, false), c);
        EXPECT_EQ(virtual_class(1000, 1000, {threads, threads}, true), c);
        EXPECT_EQ(virtual_class(std::int64_t{100} * threads, 100, {16, 512}, false), c);
        threads *= 2;
    }
    EXPECT_FALSE(is_virtual(N::scatter));
    for (const NamedAccumulator& a : named_accumulators) {
        EXPECT_EQ(a.virtual_warps.least & (a.virtual_warps.least - 1), 0) << a.name;
        EXPECT_EQ(a.virtual_warps.most & (a.virtual_warps.most - 1), 0) << a.name;
        EXPECT_TRUE(a.virtual_warps.least >= 16 && a.virtual_warps.most <= 512) << a.name;
    }
    // Rows of B of 223, of 16.5 and of 16 entries on average.
    const VirtualWarps adaptive = accumulator_of("virtual").virtual_warps;
    EXPECT_EQ(virtual_class(223 * 223, 223, adaptive, false), N::virtual128);
    EXPECT_EQ(virtual_class(33, 2, adaptive, false), N::virtual32);
    EXPECT_EQ(virtual_class(32, 2, adaptive, false), N::virtual16);
}

TEST(SpgemmPolicy, HybridSortsFewProductsAndBinsOthers)
{
    using N = NumericClass;
    const int few = few_products(Accumulator::hybrid);
    const auto of = [&](std::int32_t products, std::int64_t a_entries, std::int32_t span = 1000, int fewest = -1) {
        NumericLimits limits;
        limits.virtual_warps = accumulator_of("hybrid").virtual_warps;
        const RowBounds r = row(7, 6 + span, (span + 31) / 32, products);
        const int sorted = fewest < 0 ? few : fewest;
        const N c = numeric_class(r, a_entries, 9, 9, 8, 1, Accumulator::hybrid, h200_shared, sorted, limits);
        EXPECT_EQ(is_few(c), is_few(structure_class(r, h200_shared, sorted)));
        EXPECT_TRUE(is_few(c) ? products <= numeric_capacity(c) : is_virtual(c));
        return c;
    };
    // Up to 128, near each other or not; but where one key has no room for a column's distance.
    EXPECT_EQ(of(1, 1), N::few8);
    EXPECT_EQ(of(64, 4), N::few64);
    EXPECT_EQ(of(65, 4), N::few128);
    EXPECT_EQ(of(128, 1), N::few128);
    EXPECT_EQ(of(128, 1, 1 << 20), N::few128);
    EXPECT_EQ(of(129, 1), N::virtual32);
    EXPECT_EQ(of(129, 1, 1 << 20), N::virtual32);
    EXPECT_EQ(of(128, 1, 1 << 25), N::virtual16);
    // Twins are not sorted.
    EXPECT_EQ(of(9, 3, 1000, few_products(90, 100, few)), N::virtual16);
    // The bin bounds a row whose rows of B are long,
    EXPECT_EQ(of(256, 1), N::virtual32);
    EXPECT_EQ(of(257, 1), N::virtual64);
    EXPECT_EQ(of(1024, 2), N::virtual128);
    EXPECT_EQ(of(2048, 4), N::virtual256);
    EXPECT_EQ(of(2049, 4), N::virtual512);
    EXPECT_EQ(of(std::numeric_limits<std::int32_t>::max(), 1), N::virtual512);
    // their mean length one where they are short.
    EXPECT_EQ(of(100'000, 100'000), N::virtual16);
    EXPECT_EQ(of(100'000, 1000), N::virtual128);
    EXPECT_EQ(numeric_class(row(0, 99, 9, 99), 3, 4, 0, 8, 1, Accumulator::hybrid, h200_shared, few), N::none);
}

TEST(SpgemmPolicy, SmallClassesJoinTheNext)
{
    using N = NumericClass;
    std::array<unsigned, static_cast<std::size_t>(N::count)> rows{};
    rows[static_cast<int>(N::none)] = 100;
    EXPECT_TRUE(plan_launches<N>(rows).empty());
    rows[static_cast<int>(N::window2048)] = 3;
    rows[static_cast<int>(N::hash512)] = 10;
    rows[static_cast<int>(N::hash1024)] = 20;
    rows[static_cast<int>(N::hash2048)] = 5000;
    rows[static_cast<int>(N::hash8192)] = 7;
    rows[static_cast<int>(N::rank24)] = 1;
    const std::vector<Launch<N>> expected{
        {N::window2048, 100, 3}, {N::hash2048, 103, 5030}, {N::hash8192, 5133, 7}, {N::rank24, 5140, 1}};
    EXPECT_EQ(plan_launches<N>(rows), expected);
}

}  // namespace
}  // namespace rmsp::kernels::spgemm
