#include <gtest/gtest.h>
#include <kernels/spmv/csr_nnz_split/tiles.hpp>

#include "matrices.hpp"

namespace rmsp::kernels::test {
namespace {

/// What the kernel relies on, for any matrix.
TEST(Tiles, BlocksCoverEachNonzeroOnceWithinTheirWindows)
{
    for (const Shape& matrix : shapes()) {
        SCOPED_TRACE(matrix.name);
        std::vector<std::int64_t> row_ptr{0};
        for (const std::int64_t length : matrix.lengths) {
            row_ptr.push_back(row_ptr.back() + length);
        }
        const auto rows = static_cast<std::int64_t>(matrix.lengths.size());
        const std::int64_t nnz = row_ptr.back();
        if (nnz == 0) {
            continue;
        }
        const std::int64_t longest = *std::max_element(matrix.lengths.begin(), matrix.lengths.end());
        for (const int compute_units : {1, 7, 132}) {
            const SplitShape shape = split_shape(nnz, rows, longest, compute_units);
            ASSERT_EQ(shape.block_entries % split_tuning.alignment, 0);
            ASSERT_LE(shape.window, split_tuning.tiles.tile_entries());
            if (!shape.interleaved) {
                ASSERT_GE(shape.window, std::min<std::int64_t>(longest, split_tuning.tiles.longest_whole_row));
            }
            ASSERT_LT((shape.blocks - 1) * shape.block_entries, nnz);
            ASSERT_GE(shape.blocks * shape.block_entries, nnz);
            PackedStart before{};
            for (std::int64_t block = 0; block <= shape.blocks; ++block) {
                const std::int64_t entry = block * shape.block_entries;
                const PackedStart start = split_start(entry, rows, nnz, row_ptr.data(), shape.window);
                const auto row = static_cast<std::size_t>(start.row);
                ASSERT_GE(start.entry, before.entry);
                ASSERT_GE(start.entry, std::min(entry, nnz));
                if (start.cuts_row()) {
                    ASSERT_EQ(start.entry, entry);
                    ASSERT_EQ(start.row_begin, row_ptr[row]);
                    ASSERT_LT(start.entry, row_ptr[row + 1]);
                    ASSERT_GT(row_ptr[row + 1] - row_ptr[row], shape.window);
                } else {
                    ASSERT_LT(start.entry, entry + std::max(shape.window, 1));
                    ASSERT_EQ(start.entry, start.row < rows ? row_ptr[row] : nnz);
                }
                before = start;
            }
            EXPECT_EQ(before.entry, nnz);
            EXPECT_EQ(before.row, rows);
        }
    }
}

TEST(Tiles, ByHand)
{
    // Rows of 2, 0, 7 and 1.
    const std::vector<std::int32_t> row_ptr{0, 2, 2, 9, 10};
    const auto at = [&](std::int64_t entry, int window) {
        const PackedStart s = split_start(entry, 4, 10, row_ptr.data(), window);
        return std::vector<std::int64_t>{s.row, s.entry, s.cuts_row() ? 1 : 0};
    };
    using Start = std::vector<std::int64_t>;
    EXPECT_EQ(at(0, 0), (Start{0, 0, 0}));
    EXPECT_EQ(at(1, 1), (Start{0, 1, 1}));
    EXPECT_EQ(at(1, 2), (Start{1, 2, 0}));
    EXPECT_EQ(at(2, 0), (Start{2, 2, 0}));
    EXPECT_EQ(at(4, 6), (Start{2, 4, 1}));
    EXPECT_EQ(at(4, 7), (Start{3, 9, 0}));
    EXPECT_EQ(at(9, 7), (Start{3, 9, 0}));
    EXPECT_EQ(at(10, 7), (Start{4, 10, 0}));
    EXPECT_EQ(at(500, 7), (Start{4, 10, 0}));
}

TEST(Tiles, FewNonzerosTakeFewBlocksAndManyTakeSeveralWaves)
{
    const int tile = split_tuning.tiles.tile_entries();
    const std::int64_t at_once = std::int64_t{132} * split_tuning.tiles.blocks_per_multiprocessor;
    EXPECT_EQ(split_shape(0, 5, 0, 132).blocks, 0);
    EXPECT_EQ(split_shape(1, 1, 1, 132).blocks, 1);
    EXPECT_LE(split_shape(1'000, 300, 9, 132).block_tiles, split_tuning.tiles.warps());
    EXPECT_LE(split_shape(3'000'000, 300'000, 27, 132).blocks, at_once);
    const SplitShape large = split_shape(std::int64_t{5} << 32, std::int64_t{1} << 30, 27, 132);
    EXPECT_GT(large.blocks, at_once);
    EXPECT_LE(large.block_tiles, split_tuning.tiles.most_warp_tiles * split_tuning.tiles.warps());
    EXPECT_GE(large.blocks * large.block_entries, std::int64_t{5} << 32);
    EXPECT_EQ(tile % split_tuning.alignment, 0);
}

TEST(Tiles, AreInterleavedWhereRowsEndInFewOfThem)
{
    const std::int64_t long_row = std::int64_t{split_tuning.row_tiles} * split_tuning.tiles.tile_entries();
    EXPECT_TRUE(split_shape(100 * long_row, 100, 3 * long_row, 132).interleaved);
    EXPECT_EQ(split_shape(100 * long_row, 100, 3 * long_row, 132).window, 0);
    EXPECT_FALSE(split_shape(100 * long_row - 1, 100, 3 * long_row, 132).interleaved);
    EXPECT_FALSE(split_shape(0, 100, 0, 132).interleaved);
    std::vector<int> entries;
    for (const bool row_ends : {false, true}) {
        entries.clear();
        for (int lane = 0; lane < 32; ++lane) {
            for (int k = 0; k < split_tuning.tiles.lane_entries; ++k) {
                entries.push_back(packed_tile_entry(lane, k, row_ends));
            }
        }
        EXPECT_EQ(std::is_sorted(entries.begin(), entries.end()), row_ends);
        std::sort(entries.begin(), entries.end());
        for (int i = 0; i < split_tuning.tiles.tile_entries(); ++i) {
            EXPECT_EQ(entries[static_cast<std::size_t>(i)], i);
        }
    }
}

}  // namespace
}  // namespace rmsp::kernels::test
