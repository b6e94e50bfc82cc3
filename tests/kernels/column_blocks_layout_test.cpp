#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <kernels/spmv/column_blocks/layout.hpp>

namespace rmsp::kernels::test {
namespace {

TEST(ColumnBlocksLayout, CodesHaveRoomForTheColumnsTheirZeroAndTheEnd)
{
    EXPECT_LT(column_block_tuning<double>.columns, stretch_end);
    EXPECT_LT(column_block_tuning<float>.columns, stretch_end);
}

TEST(ColumnBlocksLayout, SlicesFitTheSharedMemory)
{
    constexpr std::size_t multiprocessor = std::size_t{227} * 1024;
    const auto bytes = []<class T>(T) {
        return (static_cast<std::size_t>(column_block_tuning<T>.columns) + 1) * sizeof(T) *
               static_cast<std::size_t>(column_block_tuning<T>.blocks_per_multiprocessor);
    };
    EXPECT_LE(bytes(0.0), multiprocessor);
    EXPECT_LE(bytes(0.0f), multiprocessor);
}

TEST(ColumnBlocksLayout, EachEntryOfATileHasItsPlace)
{
    for (const int width : {2, 4}) {
        std::set<int> places;
        for (int i = 0; i < block_tile_entries; ++i) {
            const int place = tile_value_place(i, width);
            EXPECT_TRUE(place >= 0 && place < block_tile_entries);
            places.insert(place);
            // A lane loads its entries `width` at a time, 32 lanes side by side.
            const int lane = i / tile_lane_entries;
            EXPECT_EQ(place / width % 32, lane);
            EXPECT_EQ(place % width, i % width);
        }
        EXPECT_EQ(places.size(), static_cast<std::size_t>(block_tile_entries));
    }
}

TEST(ColumnBlocksLayout, TilesOfEntries)
{
    EXPECT_EQ(block_tiles(0), 0);
    EXPECT_EQ(block_tiles(1), 1);
    EXPECT_EQ(block_tiles(block_tile_entries), 1);
    EXPECT_EQ(block_tiles(block_tile_entries + 1), 2);
    EXPECT_EQ(block_tiles(std::int64_t{1} << 40), (std::int64_t{1} << 40) / block_tile_entries);
}

std::vector<std::int64_t> share_tiles(std::span<const std::int64_t> first_tile,
                                      const std::vector<std::uint32_t>& first_stretch, int parts,
                                      const ColumnBlockTuning& tuning)
{
    std::vector<std::int64_t> cuts;
    for (int part = 0; part <= parts; ++part) {
        cuts.push_back(share_begin(part, parts, first_tile.data(), static_cast<std::int64_t>(first_tile.size()) - 1,
                                   first_stretch.data(), tuning));
    }
    return cuts;
}

TEST(ColumnBlocksLayout, SharesCoverAllTilesInOrder)
{
    const std::vector<std::int64_t> first{0, 1000, 1001, 1001, 1500};
    std::vector<std::uint32_t> stretches;
    for (std::uint32_t tile = 0; tile <= 1500; ++tile) {
        stretches.push_back(tile * 7);
    }
    for (const int parts : {1, 2, 7, 132, 3000}) {
        const auto cuts = share_tiles(first, stretches, parts, column_block_tuning<double>);
        ASSERT_EQ(cuts.size(), static_cast<std::size_t>(parts) + 1);
        EXPECT_EQ(cuts.front(), 0);
        EXPECT_EQ(cuts.back(), 1500);
        EXPECT_TRUE(std::is_sorted(cuts.begin(), cuts.end()));
        // Of the last blocks alone.
        const auto last = share_tiles(std::span(first).subspan(1), stretches, parts, column_block_tuning<double>);
        ASSERT_EQ(last.size(), static_cast<std::size_t>(parts) + 1);
        EXPECT_EQ(last.front(), 1000);
        EXPECT_EQ(last.back(), 1500);
        EXPECT_TRUE(std::is_sorted(last.begin(), last.end()));
    }
}

TEST(ColumnBlocksLayout, SharesWeighTilesSlicesAndStretches)
{
    const std::vector<std::int64_t> first{0, 800, 900, 1000, 1100};
    std::vector<std::uint32_t> none(1101, 0);
    ColumnBlockTuning tuning;
    tuning.stretches_a_tile = 10;
    tuning.slice_weight = 0;
    EXPECT_EQ(share_tiles(first, none, 2, tuning), (std::vector<std::int64_t>{0, 550, 1100}));
    // 1100 + 4 times 100: the slice of a block counts as much as 100 of its tiles.
    tuning.slice_weight = 100;
    EXPECT_EQ(share_tiles(first, none, 2, tuning), (std::vector<std::int64_t>{0, 650, 1100}));
    // The last block has 1000 stretches, which count as much as 100 tiles.
    std::vector<std::uint32_t> some = none;
    for (std::uint32_t tile = 1000; tile <= 1100; ++tile) {
        some[tile] = (tile - 1000) * 10;
    }
    tuning.slice_weight = 0;
    EXPECT_EQ(share_tiles(first, some, 2, tuning), (std::vector<std::int64_t>{0, 600, 1100}));
    EXPECT_EQ(share_tiles(first, some, 12, tuning)[11], 1050);
}

}  // namespace
}  // namespace rmsp::kernels::test
