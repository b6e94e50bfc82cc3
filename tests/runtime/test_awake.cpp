#include <chrono>
#include <cstring>

#include <gtest/gtest.h>

#include "core/team.hpp"
#include "matrices.hpp"

namespace rmsp::test {
namespace {

using namespace std::chrono_literals;

bool stay_awake_until(bool work_comes)
{
    bool told = false;
    core::keep_team_awake(
        2, 100us, [&] { told = true; }, [&] { return work_comes; });
    return told;
}

TEST(AwakeTeam, SharesWhatIsNotWorthWakingIt)
{
    (void)core::last_team_use();
    EXPECT_FALSE(core::shares(2, false)) << "it sleeps";
    const core::TeamUse slept = core::last_team_use();
    EXPECT_EQ(slept.threads, 2);
    EXPECT_FALSE(slept.worked);
    EXPECT_TRUE(stay_awake_until(true));
    EXPECT_TRUE(core::shares(2, false));
    EXPECT_TRUE(core::last_team_use().worked);
    EXPECT_FALSE(core::shares(2, false)) << "once";
    EXPECT_TRUE(stay_awake_until(false));
    EXPECT_FALSE(core::shares(2, false)) << "nothing came in time";
    EXPECT_TRUE(stay_awake_until(true));
    EXPECT_TRUE(core::shares(2, true));
    EXPECT_FALSE(core::shares(2, false)) << "others have worked since";
    EXPECT_TRUE(stay_awake_until(true));
    (void)core::last_team_use();
    EXPECT_FALSE(core::shares(2, false)) << "another task";
    EXPECT_FALSE(core::shares(1, true)) << "one thread is no team";
}

TEST(AwakeTeam, SharesEachRangeOnce)
{
    for (const bool worth_waking : {false, true}) {
        std::vector<int> calls(7);
        core::share(7, worth_waking, [&](int k) { ++calls[static_cast<std::size_t>(k)]; });
        EXPECT_EQ(calls, std::vector<int>(7, 1));
    }
}

/// Alone at first, by the team once calls have followed each other for long.
TEST(AwakeTeam, CallsInARowHaveTheSameBits)
{
    RuntimeOptions on_host;
    on_host.devices = "host:1x3";
    Runtime runtime(on_host);
    const auto a = stencil7<double>(32, 32, 31);  // less than is worth waking a team, enough for three that are awake
    const auto x = random_vector<double>(a.cols, 1);
    for (const char* const kernel : {"diagonals", "row-slices"}) {
        SCOPED_TRACE(kernel);
        DistributeOptions options;
        options.kernel = kernel;
        auto matrix = runtime.distribute(a.view(), options);
        std::vector<double> first(static_cast<std::size_t>(a.rows));
        matrix.apply(1.0, x.data(), 0.0, first.data());
        EXPECT_TRUE(verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, first.data()).passed);
        for (int i = 0; i < 300; ++i) {
            std::vector<double> y(first.size());
            matrix.apply(1.0, x.data(), 0.0, y.data());
            ASSERT_EQ(std::memcmp(first.data(), y.data(), y.size() * sizeof(double)), 0) << i;
        }
    }
}

}  // namespace
}  // namespace rmsp::test
