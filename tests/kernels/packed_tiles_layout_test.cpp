#include <gtest/gtest.h>
#include <kernels/spmv/packed_tiles.hpp>

#include "matrices.hpp"

namespace rmsp::kernels::test {
namespace {

std::vector<std::int64_t> first_entries(const Shape& shape)
{
    std::vector<std::int64_t> first{0};
    for (const std::int64_t length : shape.lengths) {
        first.push_back(first.back() + std::max<std::int64_t>(1, length));
    }
    return first;
}

TEST(PackedTiles, BlocksCoverEachEntryOnceAndHaveRoom)
{
    for (const Shape& matrix : shapes()) {
        SCOPED_TRACE(matrix.name);
        const auto first = first_entries(matrix);
        const auto rows = static_cast<std::int64_t>(matrix.lengths.size());
        for (const int compute_units : {1, 7, 132}) {
            const PackedShape shape = packed_shape(first.back(), compute_units);
            TileStart before{};
            for (std::int64_t block = 0; rows > 0 && block <= shape.blocks; ++block) {
                const TileStart start = packed_start(block * shape.block_entries, rows, first.data());
                const auto row = static_cast<std::size_t>(start.row);
                if (start.cut < 0) {
                    ASSERT_EQ(start.nonzero, first[row]);
                } else {
                    ASSERT_GT(start.nonzero, first[row]);
                    ASSERT_LT(start.nonzero, first[row + 1]);
                    ASSERT_GT(first[row + 1] - first[row], packed_tuning.longest_whole_row);
                }
                ASSERT_GE(start.row, before.row);
                ASSERT_GE(start.nonzero, before.nonzero);
                ASSERT_LE(start.nonzero - before.nonzero,
                          std::int64_t{shape.block_tiles} * packed_tuning.tile_entries());
                before = start;
            }
            EXPECT_EQ(before.nonzero, first.back());
            EXPECT_EQ(before.row, rows);
        }
    }
}

TEST(PackedTiles, FewEntriesTakeFewBlocksAndManyTakeSeveralWaves)
{
    const int tile = packed_tuning.tile_entries();
    const std::int64_t at_once = std::int64_t{132} * packed_tuning.blocks_per_multiprocessor;
    EXPECT_EQ(packed_shape(0, 132).tiles(), 0);
    EXPECT_EQ(packed_shape(1, 132).blocks, 1);
    EXPECT_LE(packed_shape(packed_tuning.warps() * tile, 132).blocks, 2);
    EXPECT_EQ(packed_shape(3'000'000, 132).blocks, at_once);
    const PackedShape large = packed_shape(std::int64_t{5} << 32, 132);
    EXPECT_GT(large.blocks, at_once);
    EXPECT_LE(large.block_tiles, packed_tuning.most_warp_tiles * packed_tuning.warps());
    EXPECT_GE(large.tiles() * tile, std::int64_t{5} << 32);
}

TEST(PackedTiles, CodesLeaveRoomForTheColumnThatStandsForNone)
{
    EXPECT_TRUE(fits_16_bits(70'000, 70'000 + 65'534));
    EXPECT_FALSE(fits_16_bits(70'000, 70'000 + 65'535));
    EXPECT_TRUE(fits_16_bits(0, 0));
    EXPECT_FALSE(fits_16_bits(0, std::numeric_limits<std::int32_t>::max()));
}

TEST(PackedTiles, RowsBeforeALaneFitBesideItsEnds)
{
    const int most = 31 * packed_tuning.lane_entries;
    const unsigned all = (1u << packed_tuning.lane_entries) - 1;
    const unsigned code = packed_ends(all, most);
    EXPECT_EQ(code & all, all);
    EXPECT_EQ(code >> packed_tuning.lane_entries, static_cast<unsigned>(most));
}

}  // namespace
}  // namespace rmsp::kernels::test
