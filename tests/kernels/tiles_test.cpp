#include <gtest/gtest.h>
#include <kernels/spmv/tiles.hpp>

#include "matrices.hpp"

namespace rmsp::kernels::test {
namespace {

/// What the kernel relies on, for any matrix.
TEST(Tiles, CoverEachNonzeroAndRowOnceAndFit)
{
    for (const Shape& shape : shapes()) {
        SCOPED_TRACE(shape.name);
        std::vector<std::int64_t> row_ptr{0};
        for (const std::int64_t length : shape.lengths) {
            row_ptr.push_back(row_ptr.back() + length);
        }
        const auto rows = static_cast<std::int64_t>(shape.lengths.size());
        const std::int64_t nnz = row_ptr.back();
        for (const int whole_row : {0, 27, tile_tuning.longest_whole_row}) {
            const int items = tile_tuning.items(whole_row);
            const std::int64_t tiles = tile_count(rows, nnz, items);
            std::vector<TileStart> starts;
            for (std::int64_t tile = 0; tile <= tiles; ++tile) {
                starts.push_back(tile_start(tile * items, rows, nnz, row_ptr, whole_row));
            }
            EXPECT_EQ(starts.front().row, 0);
            EXPECT_EQ(starts.front().nonzero, 0);
            EXPECT_EQ(starts.front().cut, -1);
            EXPECT_EQ(starts.back().row, rows);
            EXPECT_EQ(starts.back().nonzero, nnz);
            EXPECT_EQ(starts.back().cut, -1);
            for (std::size_t i = 0; i < starts.size(); ++i) {
                const TileStart& start = starts[i];
                const auto row = static_cast<std::size_t>(start.row);
                if (start.cut < 0) {
                    ASSERT_EQ(start.nonzero, row_ptr[row]);
                } else {
                    ASSERT_GT(start.nonzero, row_ptr[row]);
                    ASSERT_LT(start.nonzero, row_ptr[row + 1]);
                    ASSERT_GT(row_ptr[row + 1] - row_ptr[row], whole_row);
                }
                if (i + 1 < starts.size()) {
                    const std::int64_t base = start.nonzero / tile_tuning.alignment * tile_tuning.alignment;
                    ASSERT_GE(starts[i + 1].row, start.row);
                    ASSERT_GE(starts[i + 1].nonzero, start.nonzero);
                    ASSERT_LE(starts[i + 1].nonzero - base, tile_tuning.capacity());
                    ASSERT_LE(starts[i + 1].row - start.row + 2, tile_tuning.capacity());
                }
            }

            const std::int32_t cuts = number_cuts(starts);
            std::int32_t next = 0;
            for (std::size_t i = 0; i < starts.size(); ++i) {
                if (starts[i].cut >= 0) {
                    EXPECT_EQ(starts[i].cut, next++);
                    const bool first = starts[i - 1].cut < 0 || starts[i - 1].row != starts[i].row;
                    EXPECT_EQ(starts[i].pieces, first ? 1 : starts[i - 1].pieces + 1);
                }
            }
            EXPECT_EQ(cuts, next);
        }
    }
}

TEST(Tiles, ByHand)
{
    // Rows of 2, 0 and 7; the merge path visits: two nonzeros, end of row 0, end of row 1, seven nonzeros, end of row 2.
    const std::vector<std::int32_t> row_ptr{0, 2, 2, 9};
    const auto at = [&](std::int64_t diagonal, std::int64_t whole_row) {
        const TileStart s = tile_start(diagonal, 3, 9, row_ptr, whole_row);
        return std::vector<std::int64_t>{s.row, s.nonzero, s.cut};
    };
    using Start = std::vector<std::int64_t>;
    EXPECT_EQ(at(0, 0), (Start{0, 0, -1}));
    EXPECT_EQ(at(1, 0), (Start{0, 1, 0}));
    EXPECT_EQ(at(1, 2), (Start{0, 0, -1}));
    EXPECT_EQ(at(2, 0), (Start{1, 2, -1}));
    EXPECT_EQ(at(3, 0), (Start{1, 2, -1}));
    EXPECT_EQ(at(4, 0), (Start{2, 2, -1}));
    EXPECT_EQ(at(6, 0), (Start{2, 4, 0}));
    EXPECT_EQ(at(6, 7), (Start{2, 2, -1}));
    EXPECT_EQ(at(11, 0), (Start{3, 9, -1}));
    EXPECT_EQ(at(12, 0), (Start{3, 9, -1}));
    EXPECT_EQ(at(500, 0), (Start{3, 9, -1}));
}

TEST(Tiles, SmallMatricesHaveSmallerTiles)
{
    EXPECT_EQ(tile_items(1000, 99'000'000, 1000, 864, 256), 864);
    EXPECT_EQ(tile_items(1000, 499'001, 1000, 864, 256), 501);
    EXPECT_EQ(tile_items(1000, 99'000, 1000, 864, 256), 256);
    EXPECT_EQ(tile_items(0, 0, 1000, 864, 256), 256);
    EXPECT_EQ(tile_items(5, 5, 1, 100, 256), 100);
}

TEST(Tiles, Above32Bits)
{
    struct Thousands {
        std::int64_t operator[](std::int64_t row) const { return 1000 * row; }
    };
    const std::int64_t rows = std::int64_t{1} << 33;
    const TileStart start = tile_start(1001 * (rows - 5) + 17, rows, 1000 * rows, Thousands{}, 128);
    EXPECT_EQ(start.row, rows - 5);
    EXPECT_EQ(start.nonzero, 1000 * (rows - 5) + 17);
    EXPECT_EQ(start.cut, 0);
    EXPECT_EQ(tile_count(rows, 1000 * rows, 1001), rows);
}

}  // namespace
}  // namespace rmsp::kernels::test
