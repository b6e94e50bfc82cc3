#include <set>

#include <gtest/gtest.h>
#include <kernels/spmv/sell_blocks/layout.hpp>

namespace rmsp::kernels::test {
namespace {

template <class T>
void expect_places()
{
    for (const BlockShape& shape : block_shapes) {
        for (int width = 1; width <= 13; ++width) {
            std::set<std::int64_t> places;
            std::set<std::int64_t> codes;
            for (int k = 0; k < width; ++k) {
                for (int node = 0; node < slice_nodes(shape); ++node) {
                    for (int i = 0; i < shape.entries(); ++i) {
                        places.insert(block_entry_place<T>(shape, width, k, node, i / shape.cols, i % shape.cols));
                    }
                    codes.insert(block_code_place<T>(shape, width, k, node));
                }
            }
            const std::int64_t values = std::int64_t{width} * slice_lanes(shape) * shape.lane_values();
            EXPECT_EQ(static_cast<std::int64_t>(places.size()), values);
            EXPECT_EQ(*places.begin(), 0);
            EXPECT_EQ(*places.rbegin(), values - 1);
            EXPECT_EQ(static_cast<int>(codes.size()), width * slice_nodes(shape));
            EXPECT_EQ(*codes.rbegin(), width * slice_nodes(shape) - 1);
        }
    }
}

TEST(SellBlocksLayout, EachValueAndCodeHasItsPlace)
{
    expect_places<double>();
    expect_places<float>();
}

TEST(SellBlocksLayout, SlicesBeginWhereVectorsCanBeLoaded)
{
    EXPECT_EQ(slice_room<double>(7), 7);
    EXPECT_EQ(slice_room<float>(7), 8);
    for (const BlockShape& shape : block_shapes) {
        for (int width = 0; width < 5; ++width) {
            const auto lines = static_cast<std::size_t>(slice_lanes(shape) * shape.lane_values());
            const auto nodes = static_cast<std::size_t>(slice_nodes(shape)) * sizeof(std::uint32_t);
            const auto doubles = static_cast<std::size_t>(slice_room<double>(width));
            const auto floats = static_cast<std::size_t>(slice_room<float>(width));
            EXPECT_EQ(doubles * lines * sizeof(double) % 16, 0u);
            EXPECT_EQ(doubles * lines * sizeof(float) % 8, 0u) << "doubles that are floats";
            EXPECT_EQ(doubles * nodes % 8, 0u);
            EXPECT_EQ(floats * lines * sizeof(float) % 16, 0u);
            EXPECT_EQ(floats * nodes % 16, 0u);
        }
    }
}

TEST(SellBlocksLayout, CodesHoldTheBlockColumnAndItsEntries)
{
    const BlockShape shape{3, 3};
    EXPECT_EQ(block_code(shape, 5, 0x1ff), 5u * 512 + 511);
    EXPECT_TRUE(fits_block_codes(shape, 3 << 23));
    EXPECT_FALSE(fits_block_codes(shape, (3 << 23) + 1));
    EXPECT_TRUE(fits_block_codes({2, 2}, 2 << 28));
    EXPECT_FALSE(fits_block_codes({2, 2}, (2 << 28) + 1));
}

TEST(SellBlocksLayout, BytesDecideTheShape)
{
    EXPECT_DOUBLE_EQ(block_bytes({3, 3}, {100, 900}, 900, 8), 7600);
    EXPECT_DOUBLE_EQ(block_bytes({3, 3}, {100, 800}, 900, 8), 7600 + 1200);
    EXPECT_DOUBLE_EQ(block_bytes({2, 2}, {0, 0}, 900, 4), 7200);
}

TEST(SellBlocksLayout, FewSlicesAreSharedByWarps)
{
    SellBlocksTuning tuning;
    tuning.fewest_warps = 10;
    tuning.few_warps = 40;
    EXPECT_EQ(slice_parts(1000, 100, 10, 2, 2, tuning), 1);
    EXPECT_EQ(slice_parts(999, 100, 10, 2, 2, tuning), 2);
    EXPECT_EQ(slice_parts(499, 100, 10, 2, 2, tuning), 4);
    EXPECT_EQ(slice_parts(1, 100, 10, 2, 2, tuning), 8);
    EXPECT_EQ(slice_parts(1, 100, 7, 2, 2, tuning), 4) << "each part has about a group";
    // Wide slices: each part still has all that it loads at once.
    EXPECT_EQ(slice_parts(3999, 100, 12, 2, 2, tuning), 2);
    EXPECT_EQ(slice_parts(3999, 100, 11, 2, 2, tuning), 1);
    EXPECT_EQ(slice_parts(4000, 100, 100, 2, 2, tuning), 1);
}

TEST(SellBlocksLayout, LanesOfFewWarpsLoadAllAtOnce)
{
    // wrenchnut_p2 in double and in float, and slices of 2 x 2, as measured on an H200 with 1 to 8 warps a slice
    EXPECT_EQ(slice_parts(1559, 132, 25.0, 2, 3), 8);
    EXPECT_EQ(slice_parts(1559, 132, 26.0, 4, 3), 4);
    EXPECT_EQ(slice_parts(1532, 132, 26.3, 2, 2), 4);
    EXPECT_EQ(slice_parts(5233, 132, 4.0, 2, 3), 1);
}

TEST(SellBlocksLayout, TheLastOfManySlicesAreSharedByThreadBlocks)
{
    EXPECT_FALSE(many_slices(2111, 132, 13.0, 2));
    EXPECT_TRUE(many_slices(2112, 132, 13.0, 2));
    EXPECT_FALSE(many_slices(5233, 132, 4.0, 2)) << "bal_16_22106, as measured on an H200";
    SellBlocksTuning tuning;
    tuning.last_warps = 16;
    tuning.groups_in_flight = 3;
    EXPECT_EQ(last_slices(15632, 132, 14.7, 2, 2, 2, tuning), 1056);
    EXPECT_EQ(last_slices(15633, 132, 14.7, 2, 2, 2, tuning), 1057) << "the others fill thread blocks";
    EXPECT_EQ(last_slices(15632, 132, 12.0, 2, 2, 2, tuning), 0) << "each part loads its share at once";
    EXPECT_EQ(last_slices(15632, 132, 99.0, 2, 4, 1, tuning), 0) << "a thread block has one already";
    EXPECT_EQ(last_slices(1000, 132, 14.7, 2, 2, 2, tuning), 1000);
    EXPECT_EQ(last_slices(0, 132, 14.7, 2, 2, 2, tuning), 0);
}

TEST(SellBlocksLayout, ThreadBlocksHaveWholeSlices)
{
    for (const int parts : {1, 2, 4, 8}) {
        EXPECT_EQ(slice_threads(parts) % (32 * parts), 0);
        EXPECT_LE(slice_threads(parts), sell_blocks_tuning.threads);
    }
}

}  // namespace
}  // namespace rmsp::kernels::test
