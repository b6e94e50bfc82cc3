#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/io.hpp>

#include "matrix/diagonal.hpp"
#include "tests/io/helpers.hpp"
#include "tests/matrix/small.hpp"

namespace rmsp::matrix {
namespace {

using testing::ElementsAre;

TEST(Diagonal, AddsRepeatedEntriesAndPutsZeros)
{
    const std::vector<std::int64_t> row_ptr{0, 3, 4, 4};
    const std::vector<std::int32_t> col_idx{0, 1, 0, 2};
    const std::vector<float> values{1, 2, 4, 8};
    EXPECT_THAT(diagonal(CsrView<float>{3, 4, 4, row_ptr.data(), col_idx.data(), values.data()}), ElementsAre(5, 0, 0));
    EXPECT_THAT(diagonal(CsrView<float>{3, 1, 0, std::vector<std::int64_t>(4).data(), {}, nullptr}), ElementsAre(0));
    const std::int64_t none = 0;
    EXPECT_TRUE(diagonal(CsrView<float>{0, 0, 0, &none, {}, nullptr}).empty());
}

TEST(BlockInverses, ByHand)
{
    const auto a = test::sparse<double>(5, 5, {2, 0, 9, 0, 0,  //
                                               0, 4, 0, 0, 0,  //
                                               0, 7, 1, 1, 0,  //
                                               0, 0, 1, 2, 0,  //
                                               3, 0, 0, 0, 8});
    const auto blocks = block_inverses(a.view(), 2, 0, 5);
    EXPECT_EQ(blocks.rows, 5);
    EXPECT_EQ(blocks.size, 2);
    EXPECT_EQ(blocks.singular, 0);
    EXPECT_EQ(blocks.first_singular, -1);
    EXPECT_THAT(blocks.blocks, ElementsAre(0.5, 0, 0, 0.25, 2, -1, -1, 1, 0.125, 0, 0, 1));
    // From another row on, blocks are others, and what is behind the end is left out.
    EXPECT_THAT(block_inverses(a.view(), 3, 1, 3).blocks, ElementsAre(0.25, -1.75, 0, 0, 1, 0, 0, 0, 1));
}

TEST(BlockInverses, SingularBlocksBecomeTheirDiagonal)
{
    const auto a = test::sparse<float>(6, 6, {1, 0, 0, 0, 0, 0,  //
                                              0, 1, 0, 0, 0, 0,  //
                                              0, 0, 2, 4, 0, 0,  //
                                              0, 0, 2, 4, 0, 0,  //
                                              0, 0, 0, 0, 0, 0,  //
                                              0, 0, 0, 0, 0, 5});
    const auto blocks = block_inverses(a.view(), 2, 0, 6);
    EXPECT_EQ(blocks.singular, 2);
    EXPECT_EQ(blocks.first_singular, 1);
    EXPECT_THAT(blocks.blocks, ElementsAre(1, 0, 0, 1, 0.5F, 0, 0, 0.25F, 1, 0, 0, 0.2F));
    EXPECT_EQ(test::message_of(ErrorCode::usage, [&] { block_inverses(a.view(), 0, 0, 6); }),
              "diagonal blocks of 0 rows: from 1 to 64");
    test::message_of(ErrorCode::usage, [&] { block_inverses(a.view(), 2, 0, 7); });
}

}  // namespace
}  // namespace rmsp::matrix
