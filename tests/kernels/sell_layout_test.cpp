#include <gtest/gtest.h>
#include <kernels/spmv/sell/layout.hpp>
#include <kernels/spmv/sell/policy.hpp>

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

TEST(SellLayout, MasksWhereTheyTakeNoMoreThanCodes)
{
    EXPECT_TRUE(takes_masks(7, 7, SliceCode::bytes2, 8));
    EXPECT_TRUE(takes_masks(7, 7, SliceCode::diagonal, 8)) << "rows of different lengths";
    EXPECT_FALSE(takes_masks(8, 7, SliceCode::diagonal, 8));
    EXPECT_TRUE(takes_masks(8, 7, SliceCode::bytes2, 8)) << "64 bytes a row, and 70";
    EXPECT_FALSE(takes_masks(9, 7, SliceCode::bytes2, 8));
    EXPECT_TRUE(takes_masks(10, 7, SliceCode::bytes2, 4)) << "40 bytes a row, and 42";
    EXPECT_TRUE(takes_masks(32, 32, SliceCode::bytes1, 4));
    EXPECT_FALSE(takes_masks(33, 33, SliceCode::bytes4, 4)) << "a row has 32 bits";
}

TEST(SellLayout, EmptySlicesStayInCsr)
{
    EXPECT_FALSE(slice_is_stored(0, 0));
    EXPECT_TRUE(slice_is_stored(32 * 7, 7));
    EXPECT_TRUE(slice_is_stored(16 * 7, 7, 32, 50));
    EXPECT_FALSE(slice_is_stored(16 * 7 - 1, 7, 32, 50));
    EXPECT_TRUE(slice_is_stored(3 * 7, 7, 3)) << "the last one";
    EXPECT_FALSE(slice_is_stored(7, 7, 3));
    EXPECT_TRUE(slice_is_stored(32 * slice_policy.longest_row, slice_policy.longest_row));
}

TEST(SellLayout, LanesLoadMoreAtOnceWhereAllSlicesAreOnTheDevice)
{
    const auto groups = [](std::int64_t slices, int width) {
        return groups_at_once(slices, slices * slice_rows * width, 132);
    };
    EXPECT_EQ(groups(1, 4), 1);
    EXPECT_EQ(groups(1, 5), 2);
    EXPECT_EQ(groups(1, 8), 2);
    EXPECT_EQ(groups(1, 9), 4);
    EXPECT_EQ(groups(132 * 5 * 4, 100), 4);
    EXPECT_EQ(groups(132 * 5 * 4 + 1, 100), 2);
    EXPECT_EQ(groups(132 * 8 * 4, 100), 2);
    EXPECT_EQ(groups(132 * 8 * 4 + 1, 100), 1);
    EXPECT_EQ(groups(132 * 8 * 4, 4), 1);
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
    const auto slice = [](unsigned values, unsigned bases, unsigned codes, int width, SliceCode code, bool plain) {
        Slice s;
        s.values = values;
        s.bases = bases;
        s.codes = codes;
        s.width = static_cast<std::uint16_t>(width);
        s.code = code;
        s.plain = plain;
        return s;
    };
    EXPECT_EQ(sized_slice(9, SliceCode::csr, false, 8), slice(0, 0, 0, 9, SliceCode::csr, false));
    EXPECT_EQ(sized_slice(27, SliceCode::diagonal, true, 8), slice(54, 7, 0, 27, SliceCode::diagonal, true));
    EXPECT_EQ(sized_slice(7, SliceCode::masked, false, 8), slice(14, 2, 0, 7, SliceCode::masked, false));
    EXPECT_EQ(sized_slice(8, SliceCode::bytes1, false, 4), slice(8, 2, 2, 8, SliceCode::bytes1, false));
    EXPECT_EQ(sized_slice(9, SliceCode::bytes2, false, 8), slice(18, 3, 5, 9, SliceCode::bytes2, false));
    EXPECT_EQ(sized_slice(3, SliceCode::bytes2, false, 8), slice(6, 1, 2, 3, SliceCode::bytes2, false));
    EXPECT_EQ(sized_slice(9, SliceCode::bytes4, false, 4), slice(9, 0, 9, 9, SliceCode::bytes4, false));
}

TEST(SellLayout, BlocksOfValues)
{
    EXPECT_EQ(value_blocks(SliceValues::raw, 27, 0, 8), 54);
    EXPECT_EQ(value_blocks(SliceValues::raw, 27, 0, 4), 27);
    EXPECT_EQ(value_blocks(SliceValues::floats, 27, 0, 8), 27);
    EXPECT_EQ(value_blocks(SliceValues::uniform, 16, 0, 8), 1);
    EXPECT_EQ(value_blocks(SliceValues::uniform, 17, 0, 8), 2);
    EXPECT_EQ(value_blocks(SliceValues::nibbles, 27, 2, 8), 4 + 1) << "seven groups of 64 bytes, and the table";
    EXPECT_EQ(value_blocks(SliceValues::bytes, 27, 17, 8), 7 + 2);
    EXPECT_EQ(value_blocks(SliceValues::bytes, 27, 256, 4), 7 + 8);
    EXPECT_LE(value_blocks(SliceValues::raw, slice_policy.longest_row, 0, 8), 0xffff) << "as ValueSize counts them";
}

TEST(SellLayout, StorageOfFewestBlocks)
{
    EXPECT_EQ(slice_storage({false, false, 257}, 27, 8), SliceValues::raw);
    EXPECT_EQ(slice_storage({true, false, 257}, 27, 8), SliceValues::floats);
    EXPECT_EQ(slice_storage({true, false, 257}, 27, 4), SliceValues::raw) << "floats are raw already";
    EXPECT_EQ(slice_storage({true, true, 27}, 27, 8), SliceValues::uniform);
    EXPECT_EQ(slice_storage({false, false, 2}, 27, 8), SliceValues::nibbles);
    EXPECT_EQ(slice_storage({false, false, 16}, 27, 8), SliceValues::nibbles);
    EXPECT_EQ(slice_storage({false, false, 17}, 27, 8), SliceValues::bytes);
    EXPECT_EQ(slice_storage({false, false, 256}, 27, 8), SliceValues::bytes);
    EXPECT_EQ(slice_storage({true, false, 256}, 20, 8), SliceValues::floats) << "its table takes 16 blocks";
    EXPECT_EQ(slice_storage({false, false, 224}, 7, 8), SliceValues::raw) << "the table is as large as the values";
    EXPECT_EQ(slice_storage({true, true, 1}, 1, 8), SliceValues::uniform);
    EXPECT_EQ(slice_storage({true, true, 1}, 1, 4), SliceValues::raw) << "nothing is saved";
}

TEST(SellLayout, EncodedWhereThatSavesEnough)
{
    EXPECT_FALSE(values_are_encoded(0, 0));
    EXPECT_FALSE(values_are_encoded(100, 100, 10));
    EXPECT_FALSE(values_are_encoded(91, 100, 10));
    EXPECT_TRUE(values_are_encoded(90, 100, 10));
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
