#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <partition/balance.hpp>

namespace rmsp::partition {
namespace {

TEST(EqualTime, EqualTimesKeepTheirNonzeros)
{
    const std::vector<double> weights = equal_time_weights(std::vector<std::int64_t>{30, 10}, std::vector{2.0, 2.0});
    ASSERT_EQ(weights.size(), 2u);
    EXPECT_DOUBLE_EQ(weights[0], 1.5);
    EXPECT_DOUBLE_EQ(weights[1], 0.5);
}

TEST(EqualTime, CutsMoveIntoTheSlowPart)
{
    // 100 nonzeros of 1 s each, then 100 of 3 s: half of the 400 s are reached 33.3 nonzeros into the second part.
    const auto two = equal_time_weights(std::vector<std::int64_t>{100, 100}, std::vector{100.0, 300.0});
    EXPECT_NEAR(two[0], 2 * (100 + 100.0 / 3) / 200, 1e-12);
    EXPECT_NEAR(two[0] + two[1], 2, 1e-12);
    // Several cuts may fall into one part, and none into another.
    const auto four = equal_time_weights(std::vector<std::int64_t>{10, 10, 10, 10}, std::vector{1.0, 1.0, 1.0, 13.0});
    EXPECT_NEAR(four[0], 30.0 / 10 + 1.0 / 13, 1e-12);
    for (int i = 1; i < 4; ++i) {
        EXPECT_NEAR(four[static_cast<std::size_t>(i)], 4.0 / 13, 1e-12);
    }
}

TEST(EqualTime, OnePartIsLeftAlone)
{
    EXPECT_EQ(equal_time_weights(std::vector<std::int64_t>{7}, std::vector{0.5}), std::vector{1.0});
}

TEST(EqualTime, Imbalance)
{
    EXPECT_EQ(time_imbalance({}), 0);
    EXPECT_DOUBLE_EQ(time_imbalance(std::vector{3.0, 5.0}), 0.25);
}

}  // namespace
}  // namespace rmsp::partition
