#include <gtest/gtest.h>
#include <kernels/spmv/ell/layout.hpp>

// The layout of kernel "ell", on the host.
namespace rmsp::kernels::test {
namespace {

EllShape shape_for(std::int64_t rows, std::int64_t nnz, std::int64_t longest, double deviation = 0)
{
    RowStatistics r;
    r.rows = rows;
    r.nnz = nnz;
    r.longest_row = longest;
    r.mean = rows > 0 ? static_cast<double>(nnz) / static_cast<double>(rows) : 0;
    r.deviation = deviation;
    return ell_shape(r);
}

TEST(Ell, HasTheFewestLanesThatHaveRoomForARow)
{
    EXPECT_EQ(shape_for(100, 100, 1), (EllShape{1, 1, false}));
    EXPECT_EQ(shape_for(100, 300, 3), (EllShape{1, 3, false}));
    EXPECT_EQ(shape_for(100, 400, 4), (EllShape{1, 4, false}));
    EXPECT_EQ(shape_for(100, 500, 5), (EllShape{2, 3, false}));
    EXPECT_EQ(shape_for(100, 700, 7), (EllShape{2, 4, false}));
    EXPECT_EQ(shape_for(100, 1000, 10), (EllShape{4, 3, false}));
    EXPECT_EQ(shape_for(100, 2700, 27), (EllShape{8, 4, false}));
    EXPECT_EQ(shape_for(100, 12800, 128), (EllShape{32, 4, false}));
    EXPECT_EQ(shape_for(0, 0, 0), (EllShape{1, 1, false}));
}

TEST(Ell, LeavesWhatIsBeyondInCsr)
{
    EXPECT_EQ(shape_for(100, 12900, 129), (EllShape{32, 4, true}));
    // One long row, for which all others would have room.
    EXPECT_EQ(shape_for(100000, 300000, 50000, 2), (EllShape{2, 3, true}));
    EXPECT_EQ(shape_for(100000, 300000, 50000, 1000), (EllShape{1, 3, true}));
    // Of few rows nobody minds.
    EXPECT_EQ(shape_for(300, 900, 120, 10), (EllShape{32, 4, false}));
}

TEST(Ell, StoresWholeWarps)
{
    EXPECT_EQ(ell_entries(0, {1, 4, false}), 0);
    EXPECT_EQ(ell_entries(1, {1, 4, false}), 128);
    EXPECT_EQ(ell_entries(32, {1, 4, false}), 128);
    EXPECT_EQ(ell_entries(5, {8, 3, false}), 2 * 32 * 3);
    EXPECT_EQ(ell_entries(100, {32, 2, false}), 6400);
}

TEST(Ell, IsWeighedForSmallMatricesWithoutLongRows)
{
    RowStatistics rows{1000, 5000, 0, 7, 5, 1};
    EXPECT_TRUE(weighs_ell(rows));
    EXPECT_FALSE(weighs_ell({}));
    EllTuning tuning;
    tuning.most_entries = 8063;
    EXPECT_FALSE(weighs_ell(rows, tuning));
    tuning.most_entries = 8064;  // 63 warps of four entries a lane
    EXPECT_TRUE(weighs_ell(rows, tuning));
    rows.longest_row = 129;
    EXPECT_FALSE(weighs_ell(rows));
}

}  // namespace
}  // namespace rmsp::kernels::test
