#include <gtest/gtest.h>
#include <kernels/spmv/packed_tiles/layout.hpp>

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

std::vector<PackedStart> starts_of(const PackedShape& shape, const std::vector<std::int64_t>& first,
                                   std::int64_t whole_row)
{
    std::vector<PackedStart> starts;
    for (std::int64_t block = 0; block <= shape.blocks; ++block) {
        starts.push_back(packed_start(block * shape.block_entries, static_cast<std::int64_t>(first.size()) - 1,
                                      first.data(), whole_row));
    }
    return starts;
}

int most_tiles(const std::vector<PackedStart>& starts)
{
    std::int64_t most = 0;
    for (std::size_t block = 0; block + 1 < starts.size(); ++block) {
        most = std::max(most, packed_tiles_of(starts[block + 1].entry - starts[block].entry));
    }
    return static_cast<int>(most);
}

TEST(PackedTiles, BlocksCoverEachEntryOnce)
{
    for (const Shape& matrix : shapes()) {
        SCOPED_TRACE(matrix.name);
        const auto first = first_entries(matrix);
        const auto rows = static_cast<std::int64_t>(matrix.lengths.size());
        if (rows == 0) {
            continue;
        }
        for (const int compute_units : {1, 7, 132}) {
            for (const int whole_row : {packed_tuning.longest_whole_row, 1000}) {
                const PackedShape shape = packed_shape(first.back(), rows, compute_units);
                const auto starts = starts_of(shape, first, whole_row);
                PackedStart before{};
                for (const PackedStart& start : starts) {
                    ASSERT_EQ(start.row_begin, first[static_cast<std::size_t>(start.row)]);
                    ASSERT_GE(start.entry, start.row_begin);
                    if (start.cuts_row()) {
                        const std::int64_t row_end = first[static_cast<std::size_t>(start.row) + 1];
                        ASSERT_LT(start.entry, row_end);
                        ASSERT_GT(row_end - start.row_begin, whole_row);
                    }
                    ASSERT_GE(start.row, before.row);
                    ASSERT_GE(start.entry, before.entry);
                    ASSERT_LE(start.entry - before.entry, shape.block_entries + whole_row);
                    before = start;
                }
                EXPECT_EQ(before.entry, first.back());
                EXPECT_EQ(before.row, rows);
            }
        }
    }
}

TEST(PackedTiles, EachCutRowIsAddedUpOnceOfAllItsPieces)
{
    for (const Shape& matrix : shapes()) {
        SCOPED_TRACE(matrix.name);
        const auto first = first_entries(matrix);
        if (first.size() == 1) {
            continue;
        }
        for (const int compute_units : {1, 7, 132}) {
            const auto starts =
                starts_of(packed_shape(first.back(), static_cast<std::int64_t>(matrix.lengths.size()), compute_units),
                          first, packed_tuning.longest_whole_row);
            const int block_tiles = most_tiles(starts);
            std::vector<std::int32_t> left;  // pieces that nobody has added yet
            for (std::size_t block = 0; block + 1 < starts.size(); ++block) {
                const PackedCuts cuts =
                    packed_cuts(starts.data(), static_cast<std::int64_t>(block), block_tiles, starts[block].entry);
                const PackedStart& next = starts[block + 1];
                const bool ends_row = next.row > starts[block].row;
                if (cuts.pieces > 0) {
                    ASSERT_TRUE(ends_row && starts[block].cuts_row());
                    ASSERT_EQ(cuts.pieces, static_cast<std::int32_t>(left.size()));
                    for (std::int32_t i = 0; i < cuts.pieces; ++i) {
                        ASSERT_EQ(left[static_cast<std::size_t>(i)], cuts.first_piece + i);
                    }
                    left.clear();
                } else {
                    ASSERT_FALSE(ends_row && starts[block].cuts_row());
                }
                ASSERT_EQ(cuts.own_piece, next.cuts_row() ? static_cast<std::int32_t>(block) : -1);
                if (cuts.own_piece >= 0) {
                    left.push_back(cuts.own_piece);
                }
                if (cuts.own_piece >= 0 && ends_row) {
                    // The warp in which the last row before the piece ends.
                    const auto tile = (next.row_begin - 1 - starts[block].entry) / packed_tuning.tile_entries();
                    ASSERT_LE(packed_first_tile(cuts.first_warp, packed_tuning.warps(), block_tiles), tile);
                    ASSERT_GT(packed_first_tile(cuts.first_warp + 1, packed_tuning.warps(), block_tiles), tile);
                } else {
                    ASSERT_EQ(cuts.first_warp, 0);
                }
            }
            EXPECT_TRUE(left.empty());
        }
    }
}

TEST(PackedTiles, LongRowsStayWholeWhereNoBlockNeedsAnotherTileForThat)
{
    EXPECT_EQ(packed_doublings(0), 0);
    EXPECT_EQ(packed_doublings(packed_tuning.longest_whole_row), 0);
    EXPECT_EQ(packed_doublings(packed_tuning.longest_whole_row + 1), 1);
    EXPECT_EQ(packed_doublings(std::int64_t{packed_tuning.longest_whole_row} << 30), 30);
    for (const Shape& matrix : shapes()) {
        SCOPED_TRACE(matrix.name);
        const auto first = first_entries(matrix);
        if (first.size() == 1) {
            continue;
        }
        const PackedShape shape = packed_shape(first.back(), static_cast<std::int64_t>(matrix.lengths.size()), 7);
        const auto starts = starts_of(shape, first, packed_tuning.longest_whole_row);
        const int block_tiles = most_tiles(starts);
        EXPECT_LE(block_tiles, packed_most_tiles(shape));
        constexpr int most = 12;
        int possible = most;
        for (std::size_t block = 0; block + 1 < starts.size(); ++block) {
            possible = packed_doublings_between(packed_cut(starts[block], first.data()),
                                                packed_cut(starts[block + 1], first.data()), block_tiles, possible);
        }
        for (int n = 0; n <= most; ++n) {
            const auto after = starts_of(shape, first, std::int64_t{packed_tuning.longest_whole_row} << n);
            for (std::size_t block = 0; block < starts.size(); ++block) {
                ASSERT_EQ(packed_cut(starts[block], first.data()).entry_after(n), after[block].entry);
            }
            if (n <= possible) {
                EXPECT_LE(most_tiles(after), block_tiles);
            } else if (n == possible + 1) {
                EXPECT_GT(most_tiles(after), block_tiles);
            }
        }
    }
}

TEST(PackedTiles, FewEntriesTakeFewBlocksAndManyTakeSeveralWaves)
{
    const int tile = packed_tuning.tile_entries();
    const std::int64_t at_once = std::int64_t{132} * packed_tuning.blocks_per_multiprocessor;
    EXPECT_EQ(packed_shape(0, 0, 132).blocks, 0);
    EXPECT_EQ(packed_shape(1, 1, 132).blocks, 1);
    EXPECT_LE(packed_shape(packed_tuning.warps() * tile, 1000, 132).blocks, 2);
    EXPECT_EQ(packed_shape(3'000'000, 300'000, 132).blocks, at_once);
    const PackedShape large = packed_shape(std::int64_t{5} << 32, std::int64_t{1} << 30, 132);
    EXPECT_GT(large.blocks, at_once);
    EXPECT_LE(large.block_entries + packed_tuning.longest_whole_row,
              std::int64_t{packed_tuning.most_warp_tiles} * packed_tuning.warps() * tile);
    EXPECT_GE(large.blocks * large.block_entries, std::int64_t{5} << 32);
}

TEST(PackedTiles, BlocksThatWaitForEachOtherAreFewer)
{
    const std::int64_t entries = 1'000'000;
    const std::int64_t one_tile = packed_shape(entries, 100'000, 132).blocks;
    EXPECT_GT(one_tile, 500);
    EXPECT_EQ(packed_shape(entries, one_tile, 132).blocks, one_tile);
    EXPECT_EQ(packed_shape(entries, 100, 132).blocks, 2 * 132);
    EXPECT_LT(packed_shape(entries, 100, 66).blocks, packed_shape(entries, 100'000, 132).blocks);
    EXPECT_EQ(packed_shape(1000, 1, 132).blocks, packed_shape(1000, 1000, 132).blocks);
    EXPECT_EQ(packed_shape(10 * entries, 100, 132).blocks, packed_shape(10 * entries, 100'000, 132).blocks);
}

TEST(PackedTiles, CodesLeaveRoomForTheColumnThatStandsForNone)
{
    EXPECT_TRUE(fits_16_bits(70'000, 70'000 + 65'534));
    EXPECT_FALSE(fits_16_bits(70'000, 70'000 + 65'535));
    EXPECT_TRUE(fits_16_bits(0, 0));
    EXPECT_FALSE(fits_16_bits(0, std::numeric_limits<std::int32_t>::max()));
}

TEST(PackedTiles, HeadersKeepEachNumberWithItsFlag)
{
    // The largest row and column there can be: one less than their number.
    for (const std::int32_t number : {0, 1, std::numeric_limits<std::int32_t>::max() - 1}) {
        for (const bool flag : {false, true}) {
            const std::int32_t kept = complement_if(flag, number);
            EXPECT_EQ(kept < 0, flag);
            EXPECT_EQ(without_complement(kept), number);
            EXPECT_NE(kept, wide_columns);
        }
    }
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
