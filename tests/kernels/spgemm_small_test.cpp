#include <gtest/gtest.h>
#include <kernels/spgemm/numeric_policy.hpp>
#include <kernels/spgemm/small_policy.hpp>

namespace rmsp::kernels::spgemm {
namespace {

/// Of rows with so many products each, as far as is known.
ExpectedRows rows_of(std::int64_t rows, double mean, std::int64_t most = -1)
{
    return {rows, 1000, mean * static_cast<double>(rows), most};
}

TEST(SmallProducts, RowsHaveAsManyThreadsAsTheyHaveProductsFor)
{
    EXPECT_EQ(threads_of_small(rows_of(100, 0)), 8);
    EXPECT_EQ(threads_of_small(rows_of(100, 40)), 8);
    EXPECT_EQ(threads_of_small(rows_of(100, 42)), 16);
    EXPECT_EQ(threads_of_small(rows_of(100, 83)), 32);
    EXPECT_EQ(threads_of_small(rows_of(100, 165)), block_of_small);
}

TEST(SmallProducts, RowsThatAreKnownHaveAsManyAsTheyNeed)
{
    constexpr std::int64_t many = 20'000;
    EXPECT_EQ(threads_of_small(rows_of(many, 60, 64)), 8);
    EXPECT_EQ(threads_of_small(rows_of(many, 60, 65)), 16);
    EXPECT_EQ(threads_of_small(rows_of(many, 60, 1000)), 16);
    // Where threads would have nothing to do, rows that are rare have more, too.
    constexpr std::int64_t few = 1'000;
    EXPECT_EQ(threads_of_small(rows_of(few, 30, 65)), 16);
    EXPECT_EQ(threads_of_small(rows_of(few, 30, 129)), 32);
    EXPECT_EQ(threads_of_small(rows_of(few, 30, 257)), block_of_small);
    EXPECT_EQ(threads_of_small(rows_of(few, 30, most_small)), block_of_small);
    EXPECT_EQ(threads_of_small(rows_of(few, 30, most_small + 1)), 0);
}

TEST(SmallProducts, EndWhereTheRowsOwnTimeCounts)
{
    EXPECT_EQ(threads_of_small(rows_of(62'500, 40)), 8);
    EXPECT_EQ(threads_of_small(rows_of(62'501, 40)), 0);
    EXPECT_EQ(threads_of_small(rows_of(1'000, 1'000)), block_of_small);
    EXPECT_EQ(threads_of_small(rows_of(1'001, 1'000)), 0);
    EXPECT_EQ(threads_of_small(rows_of(1, 2'049)), 0);
    // Rows without products are launched as well.
    EXPECT_EQ(threads_of_small(rows_of(2'500'001, 0.1)), 0);
    // As are lanes without.
    EXPECT_EQ(threads_of_small(rows_of(100'000, 13)), 8);
    EXPECT_EQ(threads_of_small(rows_of(100'000, 12)), 0);
    EXPECT_EQ(threads_of_small(rows_of(10'000, 0.1)), 8);
}

TEST(SmallProducts, AColumnAndAProductAreOneKey)
{
    constexpr std::int64_t most_columns = (std::int64_t{1} << 21) - 2;
    EXPECT_EQ(threads_of_small({100, most_columns, 1000}), 8);
    EXPECT_EQ(threads_of_small({100, most_columns + 1, 1000}), 0);
}

TEST(SmallProducts, AreNoneWhereNoneAreAskedFor)
{
    EXPECT_EQ(threads_of_small(rows_of(1, 1), 0), 0);
    EXPECT_EQ(threads_of_small(rows_of(10, 10), 100), 8);
    EXPECT_EQ(threads_of_small(rows_of(11, 10), 100), 0);
}

TEST(ListedProducts, FewAreListedHoweverManyAnEntryHas)
{
    EXPECT_TRUE(worth_listing(4'000'000, 400'000, 500, 1, Accumulator::automatic));
    EXPECT_FALSE(worth_listing(5'000'000, 500'000, 500, 1, Accumulator::automatic));
    EXPECT_TRUE(is_launch_bound(1'000'000));
    EXPECT_FALSE(is_launch_bound(1'000'001));
}

TEST(ListedProducts, EntriesAreShortWhereNoWarpKeepsTheOthersWaiting)
{
    EXPECT_TRUE(entries_are_short(10'000, 4'096));
    EXPECT_FALSE(entries_are_short(10'000, 4'097));
    EXPECT_TRUE(entries_are_short(10'000'000, 50'000));
    EXPECT_FALSE(entries_are_short(10'000'000, 50'001));
}

TEST(ListedProducts, EntriesHaveThreadsForTheirProducts)
{
    constexpr std::int64_t many = 1'000'000;
    EXPECT_EQ(lanes_of_entry(3 * many, many), 1);
    EXPECT_EQ(lanes_of_entry(4 * many, many), 2);
    EXPECT_EQ(lanes_of_entry(8 * many, many), 4);
    EXPECT_EQ(lanes_of_entry(1000 * many, many), 32);
    // More where threads would have nothing to do.
    EXPECT_EQ(lanes_of_entry(3'000, 1'000), 2);
    EXPECT_EQ(lanes_of_entry(8'000, 1'000), 8);
    EXPECT_EQ(lanes_of_entry(0, 1), 1);
}

}  // namespace
}  // namespace rmsp::kernels::spgemm
