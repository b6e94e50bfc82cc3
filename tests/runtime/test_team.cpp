#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/team.hpp"
#include "matrices.hpp"

namespace rmsp::test {
namespace {

using namespace std::chrono_literals;

/// Which threads had a part of n shares.
std::set<std::thread::id> share(core::Team& team, int n, bool wakes, std::chrono::microseconds each = 0us)
{
    std::mutex mutex;
    std::set<std::thread::id> threads;
    std::vector<int> calls(static_cast<std::size_t>(n));
    const auto f = [&](int k) {
        ++calls[static_cast<std::size_t>(k)];
        std::this_thread::sleep_for(each);
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
    };
    team.run(
        n, wakes, [](const void* of, int k) { (*static_cast<decltype(f)*>(of))(k); }, &f);
    EXPECT_EQ(calls, std::vector<int>(static_cast<std::size_t>(n), 1));
    return threads;
}

TEST(Team, DoesEachShareOnce)
{
    core::Team team;
    for (const int n : {0, 1, 2, 7, 3, 100, 5000}) {
        SCOPED_TRACE(n);
        for (const bool wakes : {false, true, false}) {
            for (int i = 0; i < 20; ++i) {
                share(team, n, wakes);
            }
        }
    }
}

TEST(Team, IsWokenForWhatIsWorthIt)
{
    core::Team team;
    const std::set<std::thread::id> alone{std::this_thread::get_id()};
    EXPECT_EQ(share(team, 3, false, 1ms), alone) << "there is none yet";
    EXPECT_GT(share(team, 3, true, 100ms).size(), 1U);
    std::this_thread::sleep_for(200ms);
    EXPECT_EQ(share(team, 3, false, 1ms), alone) << "it sleeps";
    EXPECT_GT(share(team, 3, true, 100ms).size(), 1U);
    std::this_thread::sleep_for(200ms);
    team.set_more_follows(true);
    EXPECT_GT(share(team, 3, false, 100ms).size(), 1U);
    EXPECT_GT(share(team, 2, true, 100ms).size(), 1U) << "more threads than shares";
}

TEST(Team, ManyOfThemShareAtATime)
{
    std::vector<std::thread> makers;
    for (int m = 0; m < 4; ++m) {
        makers.emplace_back([m] {
            core::Team team;
            core::own_team = m > 0 ? &team : nullptr;  // one has none, and shares by OpenMP
            for (int i = 0; i < 200; ++i) {
                std::atomic<int> sum{0};
                core::share(5, i % 3 == 0, [&](int k) { sum += k; });
                EXPECT_EQ(sum, 10);
            }
        });
    }
    for (std::thread& maker : makers) {
        maker.join();
    }
}

/// Alone at first, by the team once calls have followed each other for long.
TEST(Team, CallsInARowHaveTheSameBits)
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
