#include <cstdint>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include <runtime/engine/job.hpp>
#include <runtime/engine/schedule.hpp>

namespace rmsp::engine::test {
namespace {

/// Waiting jobs with these turns, without bodies.
void add(Schedule& schedule, std::uint64_t lane, std::uint64_t thread, double weight = 8)
{
    WaitingList one(1);
    one.front().turn.lane = lane;
    one.front().turn.thread = thread;
    one.front().turn.weight = weight;
    schedule.add(one);
}

std::vector<std::uint64_t> lanes_in_order(Schedule& schedule, double seconds)
{
    std::vector<std::uint64_t> lanes;
    WaitingList out;
    while (schedule.next(out)) {
        lanes.push_back(out.back().turn.lane);
        schedule.ran(out.back().turn, seconds);
    }
    return lanes;
}

TEST(Schedule, KeepsTheOrderWithinALaneAndTakesTurnsBetweenThem)
{
    Schedule schedule;
    for (int i = 0; i < 3; ++i) {
        add(schedule, 1, 1);
    }
    for (int i = 0; i < 3; ++i) {
        add(schedule, 3, 3);
    }
    EXPECT_EQ(schedule.size(), 6u);
    EXPECT_EQ(lanes_in_order(schedule, 1.0), (std::vector<std::uint64_t>{1, 3, 1, 3, 1, 3}));
    EXPECT_TRUE(schedule.empty());
}

TEST(Schedule, SharesByWeightAndStarvesNobody)
{
    Schedule schedule;
    for (int i = 0; i < 200; ++i) {
        add(schedule, 1, 1, 64);
        add(schedule, 3, 3, 8);
        add(schedule, 5, 5, 1);
    }
    const auto order = lanes_in_order(schedule, 1e-3);
    std::map<std::uint64_t, int> seen;
    for (int i = 0; i < 146; ++i) {
        ++seen[order[static_cast<std::size_t>(i)]];
    }
    // 64 : 8 : 1 of 146 turns.
    EXPECT_NEAR(seen[1], 128, 3);
    EXPECT_NEAR(seen[3], 16, 2);
    EXPECT_NEAR(seen[5], 2, 1);
}

TEST(Schedule, SharesTimeRatherThanTurns)
{
    // Jobs of lane 1 take nine times as long.
    Schedule schedule;
    for (int i = 0; i < 100; ++i) {
        add(schedule, 1, 1);
        add(schedule, 3, 3);
    }
    int of_first = 0;
    WaitingList out;
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(schedule.next(out));
        const bool first = out.back().turn.lane == 1;
        of_first += first ? 1 : 0;
        schedule.ran(out.back().turn, first ? 9e-3 : 1e-3);
    }
    EXPECT_NEAR(of_first, 10, 2);
}

TEST(Schedule, ALaneThatWasIdleIsOwedNothing)
{
    Schedule schedule;
    add(schedule, 3, 3);
    lanes_in_order(schedule, 1e-3);
    for (int i = 0; i < 50; ++i) {
        add(schedule, 1, 1);
    }
    WaitingList out;
    for (int i = 0; i < 40; ++i) {
        ASSERT_TRUE(schedule.next(out));
        schedule.ran(out.back().turn, 1.0);
    }
    for (int i = 0; i < 10; ++i) {
        add(schedule, 3, 3);
    }
    const auto order = lanes_in_order(schedule, 1.0);
    EXPECT_EQ(order[0], 3u);
    EXPECT_EQ(std::vector<std::uint64_t>(order.begin() + 2, order.begin() + 8),
              (std::vector<std::uint64_t>{3, 1, 3, 1, 3, 1}));
}

TEST(Schedule, KeepsTheOrderOfAThreadBetweenItsLaneAndTheCommonOne)
{
    Schedule schedule;
    add(schedule, 0, 3);      // another thread's
    add(schedule, 0, 1);      // 2nd
    add(schedule, 1, 1, 64);  // after the 2nd, whatever its weight
    add(schedule, 0, 1);      // after that
    add(schedule, 1, 1, 64);
    add(schedule, 5, 5, 64);  // of a thread with no other jobs: first
    EXPECT_EQ(lanes_in_order(schedule, 1.0), (std::vector<std::uint64_t>{5, 0, 0, 1, 0, 1}));
}

}  // namespace
}  // namespace rmsp::engine::test
