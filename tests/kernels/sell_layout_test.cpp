#include <gtest/gtest.h>
#include <kernels/spmv/policy.hpp>
#include <kernels/spmv/sell.hpp>

namespace rmsp::kernels::test {
namespace {

TEST(SellLayout, ShortestCodeThatHoldsTheSpread)
{
    EXPECT_EQ(slice_code({31, 0}), SliceCode::diagonal);
    EXPECT_EQ(slice_code({0, 31}), SliceCode::bytes1);
    EXPECT_EQ(slice_code({255, 1}), SliceCode::bytes1);
    EXPECT_EQ(slice_code({256, 1}), SliceCode::bytes2);
    EXPECT_EQ(slice_code({65535, 1}), SliceCode::bytes2);
    EXPECT_EQ(slice_code({65536, 1}), SliceCode::bytes4);
    EXPECT_EQ(slice_code({0x7fffffff, 1}), SliceCode::bytes4);
}

TEST(SellLayout, EmptySlicesStayInCsr)
{
    EXPECT_FALSE(slice_is_stored(0, 0));
    EXPECT_TRUE(slice_is_stored(32 * 7, 7));
    EXPECT_TRUE(slice_is_stored(16 * 7, 7, 50));
    EXPECT_FALSE(slice_is_stored(16 * 7 - 1, 7, 50));
    EXPECT_TRUE(slice_is_stored(32 * sell_tuning.longest_row, sell_tuning.longest_row));
}

TEST(SellLayout, BlocksAreSortedWhereThatSavesPadding)
{
    EXPECT_FALSE(rows_are_sorted(0, 0));
    EXPECT_FALSE(rows_are_sorted(32 * 100, 105, 5));
    EXPECT_TRUE(rows_are_sorted(32 * 100, 106, 5));
    EXPECT_TRUE(rows_are_sorted(0, 1));
}

TEST(SellLayout, SizesOfSlices)
{
    EXPECT_EQ(sized_slice(9, SliceCode::csr, false), (Slice{0, 0, 0, 9, SliceCode::csr, false}));
    EXPECT_EQ(sized_slice(27, SliceCode::diagonal, true), (Slice{27, 7, 0, 27, SliceCode::diagonal, true}));
    EXPECT_EQ(sized_slice(8, SliceCode::bytes1, false), (Slice{8, 2, 2, 8, SliceCode::bytes1, false}));
    EXPECT_EQ(sized_slice(9, SliceCode::bytes2, false), (Slice{9, 3, 6, 9, SliceCode::bytes2, false}));
    EXPECT_EQ(sized_slice(9, SliceCode::bytes4, false), (Slice{9, 0, 12, 9, SliceCode::bytes4, false}));
}

TEST(SellLayout, PositionsHave32Bits)
{
    constexpr std::int64_t last = 0xffffffff;
    EXPECT_TRUE(fits_slice_positions({last, last, last}));
    EXPECT_FALSE(fits_slice_positions({last + 1, 0, 0}));
    EXPECT_FALSE(fits_slice_positions({0, last + 1, 0}));
    EXPECT_FALSE(fits_slice_positions({0, 0, last + 1}));
}

TEST(SellLayout, AutomaticForManyNonzerosInRowsOfSimilarLength)
{
    const SlicedRows limits{8, 0.25, 3, 27000};
    EXPECT_TRUE(prefers_sell({1000, 27000, 0, 27, 27, 0}, limits));
    EXPECT_TRUE(prefers_sell({1000, 40000, 0, 320, 40, 10}, limits));
    EXPECT_FALSE(prefers_sell({1000, 40000, 0, 321, 40, 10}, limits)) << "one row is too long";
    EXPECT_FALSE(prefers_sell({1000, 40000, 0, 320, 40, 10.1}, limits)) << "lengths differ too much";
    EXPECT_FALSE(prefers_sell({10000, 29000, 0, 3, 2.9, 0.1}, limits)) << "rows are too short";
    EXPECT_FALSE(prefers_sell({999, 26973, 0, 27, 27, 0}, limits)) << "too few nonzeros";
    EXPECT_FALSE(prefers_sell({}));
}

}  // namespace
}  // namespace rmsp::kernels::test
