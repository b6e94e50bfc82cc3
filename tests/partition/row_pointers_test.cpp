#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/error.hpp>
#include <rmsp/partition.hpp>

namespace rmsp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LocalRowPtr, AgreesWithOneByHand)
{
    const std::vector<std::int64_t> row_ptr{0, 2, 2, 6, 7, 7};
    std::vector<std::int32_t> out(4, -1);
    local_row_ptr(row_ptr.data(), PartialCsr{4, 7, 2, 5, true}, out.data());
    EXPECT_THAT(out, ElementsAre(0, 2, 3, 3));
    std::vector<std::int64_t> wide(3, -1);
    local_row_ptr(row_ptr.data(), PartialCsr{2, 4, 1, 3, false}, wide.data());
    EXPECT_THAT(wide, ElementsAre(0, 0, 2));
    std::int32_t empty = -1;
    local_row_ptr(row_ptr.data(), PartialCsr{4, 4, 3, 3, false}, &empty);
    EXPECT_EQ(empty, 0);
}

TEST(LocalRowPtr, TakesPartsBeyond32BitsOffsetsOnly)
{
    constexpr std::int64_t far = std::int64_t{1} << 35;
    const std::vector<std::int64_t> row_ptr{0, far, far + 3, far + 5};
    std::vector<std::int32_t> out(3, -1);
    local_row_ptr(row_ptr.data(), PartialCsr{far, far + 5, 1, 3, false}, out.data());
    EXPECT_THAT(out, ElementsAre(0, 3, 5));

    const PartialCsr whole{0, far + 5, 0, 3, false};
    std::vector<std::int64_t> wide(4, -1);
    local_row_ptr(row_ptr.data(), whole, wide.data());
    EXPECT_EQ(wide, row_ptr);
    try {
        local_row_ptr(row_ptr.data(), whole, out.data());
        FAIL() << "no exception";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::usage);
        EXPECT_THAT(error.what(), HasSubstr("34359738373 nonzeros"));
        EXPECT_THAT(error.what(), HasSubstr("32-bit"));
    }
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    const std::vector<std::int64_t> edge{0, most};
    std::vector<std::int32_t> two(2, -1);
    local_row_ptr(edge.data(), PartialCsr{0, most, 0, 1, false}, two.data());
    EXPECT_EQ(two[1], most);
}

TEST(LocalRowPtr, IsTheSameInParallel)
{
    constexpr std::int64_t rows = 200001;  // long enough to start a team
    std::vector<std::int32_t> row_ptr(rows + 1);
    for (std::int64_t i = 0; i <= rows; ++i) {
        row_ptr[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(3 * i + i % 2);
    }
    const PartialCsr part{5, 3 * rows, 1, rows, true};
    std::vector<std::int32_t> out(static_cast<std::size_t>(part.rows()) + 1, -1);
    local_row_ptr(row_ptr.data(), part, out.data());
    EXPECT_EQ(out.front(), 0);
    EXPECT_EQ(out.back(), part.nnz());
    for (std::int64_t i = 1; i < part.rows(); ++i) {
        ASSERT_EQ(out[static_cast<std::size_t>(i)], row_ptr[static_cast<std::size_t>(i) + 1] - 5) << i;
    }
}

TEST(RowStatistics, OfSmallMatrices)
{
    const std::vector<std::int64_t> row_ptr{0, 2, 2, 6, 7, 7};
    const RowStatistics s = row_statistics(5, row_ptr.data());
    EXPECT_EQ(s.rows, 5);
    EXPECT_EQ(s.nnz, 7);
    EXPECT_EQ(s.empty_rows, 2);
    EXPECT_EQ(s.longest_row, 4);
    EXPECT_DOUBLE_EQ(s.mean, 1.4);
    EXPECT_NEAR(s.deviation, std::sqrt((0.36 + 1.96 + 6.76 + 0.16 + 1.96) / 5), 1e-14);

    const RowStatistics none = row_statistics(0, IndexView());
    EXPECT_EQ(none.rows, 0);
    EXPECT_EQ(none.mean, 0.0);
    EXPECT_EQ(none.deviation, 0.0);
    EXPECT_THROW(row_statistics(-1, row_ptr.data()), Error);
    EXPECT_THROW(row_statistics(1, IndexView()), Error);
}

TEST(RowStatistics, OfLongAndHugeOnes)
{
    std::vector<std::int32_t> row_ptr(300001);
    for (std::size_t i = 0; i < row_ptr.size(); ++i) {
        row_ptr[i] = static_cast<std::int32_t>(i / 3 * 9);  // rows of 0, 0 and 9
    }
    const RowStatistics s = row_statistics(300000, row_ptr.data());
    EXPECT_EQ(s.nnz, 900000);
    EXPECT_EQ(s.empty_rows, 200000);
    EXPECT_EQ(s.longest_row, 9);
    EXPECT_DOUBLE_EQ(s.mean, 3.0);
    EXPECT_NEAR(s.deviation, std::sqrt(18.0), 1e-9);

    const std::vector<std::int64_t> huge{0, std::int64_t{1} << 50, std::int64_t{1} << 51};
    EXPECT_EQ(row_statistics(2, huge.data()).longest_row, std::int64_t{1} << 50);
    EXPECT_DOUBLE_EQ(row_statistics(2, huge.data()).deviation, 0.0);
}

}  // namespace
}  // namespace rmsp
