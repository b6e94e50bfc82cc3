#include <array>
#include <chrono>
#include <future>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <runtime/engine/host/host_device.hpp>
#include <runtime/matrix/race.hpp>

namespace rmsp::distributed::test {

namespace {

using engine::make_host_device;
using engine::Worker;

struct Log {
    int applies = 0;
    int updates = 0;
    bool alive = true;
};

/// Adds `value` to y[0], and takes its time; with an order if there is a time for vectors in it.
class Runner final : public kernels::SpmvOperator<double> {
public:
    Runner(Log& log, double value, std::chrono::microseconds time,
           std::optional<std::chrono::microseconds> time_in_order = {})
        : log_(log), value_(value), time_(time), time_in_order_(time_in_order)
    {
    }
    ~Runner() override { log_.alive = false; }
    void apply(double /*alpha*/, const double* /*x*/, double /*beta*/, double* y, const kernels::Context&) override
    {
        take(time_);
        y[0] += value_;
    }
    const kernels::RowOrder* order() const override { return time_in_order_ ? &order_ : nullptr; }
    void apply_in_order(double /*alpha*/, const double* x, bool x_in_order, double /*beta*/, double* y, bool y_in_order,
                        const kernels::Context&) override
    {
        EXPECT_TRUE(x_in_order && y_in_order);
        take(time_in_order_.value_or(time_));
        y[7] = x[7];
    }
    void update_values(const kernels::Context&) override { ++log_.updates; }
    std::int64_t format_bytes() const override { return static_cast<std::int64_t>(value_); }
    std::int64_t workspace_bytes() const override { return 100; }

private:
    void take(std::chrono::microseconds time)
    {
        ++log_.applies;
        const auto end = std::chrono::steady_clock::now() + time;
        while (std::chrono::steady_clock::now() < end) {
        }
    }

    Log& log_;
    double value_;
    std::chrono::microseconds time_;
    std::optional<std::chrono::microseconds> time_in_order_;
    kernels::RowOrder order_;
};

Race<double>::Runners two(std::unique_ptr<Runner> favourite, std::unique_ptr<Runner> challenger)
{
    Race<double>::Runners runners;
    runners.push_back(std::move(favourite));
    runners.push_back(std::move(challenger));
    return runners;
}

class RaceTest : public testing::Test {
protected:
    RaceTest()
    {
        DeviceInfo info;
        info.compute_units = 1;
        worker_ = std::make_unique<Worker>(0, Placement{}, [info] { return make_host_device(info); });
        worker_->wait_until_open();
    }
    /// Runs f on the worker's thread and waits.
    template <class F>
    void on_worker(F f)
    {
        std::promise<void> done;
        worker_->post([&](Worker&) {
            f();
            done.set_value();
        });
        done.get_future().wait();
    }

    std::unique_ptr<Worker> worker_;
};

TEST_F(RaceTest, TheFasterStaysAndTheOtherIsFreed)
{
    using namespace std::chrono_literals;
    for (const bool favourite_wins : {false, true}) {
        Log first;
        Log second;
        const auto outcome = std::make_shared<RaceOutcome>();
        on_worker([&] {
            Race<double> race(*worker_,
                              two(std::make_unique<Runner>(first, 1, favourite_wins ? 100us : 3000us),
                                  std::make_unique<Runner>(second, 100, favourite_wins ? 3000us : 100us)),
                              outcome);
            EXPECT_EQ(race.format_bytes(), 1);
            EXPECT_EQ(race.workspace_bytes(), 200);
            double y = 0;
            for (int i = 0; i < 10; ++i) {
                race.apply(1, nullptr, 0, &y, worker_->context());
                EXPECT_EQ(outcome->winner.load(), -1);
            }
            EXPECT_EQ(y, 505);  // five applies of each
            race.update_values(worker_->context());
            for (int i = 0; i < 4; ++i) {
                race.apply(1, nullptr, 0, &y, worker_->context());
            }
            EXPECT_EQ(y, favourite_wins ? 509 : 905);
            EXPECT_EQ(race.format_bytes(), favourite_wins ? 1 : 100);
            EXPECT_EQ(race.workspace_bytes(), 100);
            EXPECT_EQ(first.alive, favourite_wins);
            EXPECT_EQ(second.alive, !favourite_wins);
            race.update_values(worker_->context());
        });
        EXPECT_EQ(outcome->winner.load(), favourite_wins ? 0 : 1);
        EXPECT_EQ(outcome->seconds[0] < outcome->seconds[1], favourite_wins);
        EXPECT_EQ(first.updates + second.updates, 3);
    }
}

TEST_F(RaceTest, OfSeveralTheFastestStays)
{
    using namespace std::chrono_literals;
    std::array<Log, 4> logs;
    const auto outcome = std::make_shared<RaceOutcome>();
    on_worker([&] {
        constexpr std::array times{2000us, 4000us, 300us, 3000us};
        Race<double>::Runners runners;
        for (std::size_t i = 0; i < times.size(); ++i) {
            runners.push_back(std::make_unique<Runner>(logs[i], static_cast<double>(i + 1), times[i]));
        }
        Race<double> race(*worker_, std::move(runners), outcome);
        double y = 0;
        for (int i = 0; i < 21; ++i) {
            race.apply(1, nullptr, 0, &y, worker_->context());
        }
        EXPECT_EQ(race.format_bytes(), 3);
        EXPECT_EQ(race.workspace_bytes(), 100);
        for (std::size_t i = 0; i < logs.size(); ++i) {
            EXPECT_EQ(logs[i].applies, i == 2 ? 6 : 5);
            EXPECT_EQ(logs[i].alive, i == 2);
        }
    });
    EXPECT_EQ(outcome->winner.load(), 2);
    EXPECT_EQ(outcome->seconds.size(), 4u);
}

TEST(RaceRounds, OnlyTheLastTellsCloseOnesApart)
{
    constexpr int last = Race<double>::rounds;
    using Numbers = std::vector<std::size_t>;
    const auto left = [](const std::vector<double>& seconds, int round) {
        Numbers all(seconds.size());
        std::iota(all.begin(), all.end(), std::size_t{0});
        return Race<double>::survivors(seconds, all, round);
    };
    for (int round = 1; round < last; ++round) {
        EXPECT_EQ(left({100, 112}, round), Numbers{0});
        EXPECT_EQ(left({112, 100}, round), Numbers{1});
        EXPECT_EQ(left({100, 109}, round), (Numbers{0, 1}));
        EXPECT_EQ(left({109, 100}, round), (Numbers{0, 1}));
        EXPECT_EQ(left({120, 109, 100, 300}, round), (Numbers{1, 2}));
    }
    EXPECT_EQ(left({100, 109}, last), Numbers{0});
    EXPECT_EQ(left({109, 100}, last), Numbers{1});
    EXPECT_EQ(left({100, 99}, last), Numbers{0}) << "within the margin the favourite stays";
    EXPECT_EQ(left({100, 99, 97}, last), Numbers{2});
    EXPECT_EQ(Race<double>::survivors({100, 99, 98.5}, {1, 2}, last), Numbers{2}) << "it has left";
}

TEST_F(RaceTest, EqualOnesAreDecidedToo)
{
    using namespace std::chrono_literals;
    Log first;
    Log second;
    const auto outcome = std::make_shared<RaceOutcome>();
    on_worker([&] {
        Race<double> race(*worker_,
                          two(std::make_unique<Runner>(first, 1, 10us), std::make_unique<Runner>(second, 100, 10us)),
                          outcome);
        double y = 0;
        for (int i = 0; i <= Race<double>::most_applies; ++i) {
            race.apply(1, nullptr, 0, &y, worker_->context());
        }
        EXPECT_NE(first.alive, second.alive);
    });
    EXPECT_GE(outcome->winner.load(), 0);
}

TEST_F(RaceTest, VectorsInAnOrderEndItAtOnce)
{
    using namespace std::chrono_literals;
    // The second is slower, but for vectors in its order. What is timed once must not be near what a busy machine takes
    // from a thread.
    for (const int before : {0, 1, 9, 10}) {
        Log first;
        Log second;
        const auto outcome = std::make_shared<RaceOutcome>();
        on_worker([&] {
            Race<double> race(
                *worker_,
                two(std::make_unique<Runner>(first, 1, 40000us), std::make_unique<Runner>(second, 100, 50000us, 100us)),
                outcome);
            double y = 0;
            for (int i = 0; i < before; ++i) {
                race.apply(1, nullptr, 0, &y, worker_->context());
            }
            EXPECT_EQ(race.order(), nullptr);
            race.decide_in_order(8);
            EXPECT_EQ(outcome->winner.load(), 1);
            EXPECT_TRUE(outcome->in_order);
            EXPECT_LT(outcome->seconds[1], outcome->seconds[0]);
            EXPECT_EQ(first.applies + second.applies, before + 4);
            EXPECT_NE(race.order(), nullptr);
            EXPECT_FALSE(first.alive);
            race.decide_in_order(8);
            race.apply(1, nullptr, 0, &y, worker_->context());
            EXPECT_EQ(second.applies, before / 2 + 3);
        });
    }
}

TEST_F(RaceTest, IsDecidedAtOnceIfAskedTo)
{
    using namespace std::chrono_literals;
    Log first;
    Log second;
    const auto outcome = std::make_shared<RaceOutcome>();
    on_worker([&] {
        // The second would win with vectors in its order.
        Race<double> race(
            *worker_,
            two(std::make_unique<Runner>(first, 1, 100us), std::make_unique<Runner>(second, 100, 50000us, 1us)),
            outcome);
        race.decide_now(5, 8);
        EXPECT_EQ(outcome->winner.load(), 0);
        EXPECT_FALSE(outcome->in_order);
        EXPECT_EQ(first.applies + second.applies, 4);
        EXPECT_FALSE(second.alive);
        race.decide_now(5, 8);
        EXPECT_EQ(first.applies, 2);
    });
}

TEST_F(RaceTest, WithoutAnOrderItGoesOn)
{
    using namespace std::chrono_literals;
    Log first;
    Log second;
    const auto outcome = std::make_shared<RaceOutcome>();
    on_worker([&] {
        Race<double> race(*worker_,
                          two(std::make_unique<Runner>(first, 1, 10us), std::make_unique<Runner>(second, 100, 10us)),
                          outcome);
        race.decide_in_order(8);
        EXPECT_EQ(first.applies + second.applies, 0);
    });
    EXPECT_EQ(outcome->winner.load(), -1);
}

}  // namespace
}  // namespace rmsp::distributed::test
