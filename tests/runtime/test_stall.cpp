#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <runtime/engine/job_queue.hpp>

#include "link_fixtures.hpp"
#include "workers.hpp"

/// Data that never arrive, without an error.
namespace rmsp::transport {
namespace {

using engine::JobQueue;
using engine::Rendezvous;
using engine::Worker;

/// Open at first.
class Gate {
public:
    void open() { set(true); }
    void close() { set(false); }
    void pass()
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return open_; });
    }

private:
    void set(bool open)
    {
        std::lock_guard lock(mutex_);
        open_ = open;
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = true;
};

/// Host copies whose data for the second device arrive once a gate is open.
class Silent final : public Transport {
public:
    Silent(std::shared_ptr<Gate> gate, std::shared_ptr<std::atomic<int>> aborts)
        : gate_(std::move(gate)), aborts_(std::move(aborts))
    {
    }
    std::string name() const override { return "nccl"; }  // one of the table, which plans look up
    std::unique_ptr<Channel> make_channel(int devices, std::int64_t bytes, std::vector<std::int64_t> received) override
    {
        return std::make_unique<SilentChannel>(copies_->make_channel(devices, bytes, std::move(received)), gate_);
    }
    void open(Channel& channel, Worker& worker) override
    {
        copies_->open(*dynamic_cast<SilentChannel&>(channel).copies, worker);
    }
    void abort(int) noexcept override { ++*aborts_; }

private:
    struct SilentChannel final : Channel {
        SilentChannel(std::unique_ptr<Channel> copies_, std::shared_ptr<Gate> gate_)
            : copies(std::move(copies_)), gate(std::move(gate_))
        {
        }
        void gather(Worker& worker, engine::Stream& stream, Rendezvous& meeting, const Gather& what,
                    const std::function<void()>& write) override
        {
            if (worker.rank() == 1) {
                gate->pass();
            }
            copies->gather(worker, stream, meeting, what, write);
        }
        void settle(Worker& worker, engine::Stream& stream, Rendezvous& meeting) override
        {
            copies->settle(worker, stream, meeting);
        }
        void reduce_scatter(Worker& worker, Rendezvous& meeting, const Reduce& reduce) override
        {
            copies->reduce_scatter(worker, meeting, reduce);
        }
        void close(int rank) noexcept override { copies->close(rank); }

        std::unique_ptr<Channel> copies;
        std::shared_ptr<Gate> gate;
    };

    std::unique_ptr<Transport> copies_ = make_transport("host", {});
    std::shared_ptr<Gate> gate_;
    std::shared_ptr<std::atomic<int>> aborts_;
};

struct SilentParts {
    std::shared_ptr<Gate> gate = std::make_shared<Gate>();
    std::shared_ptr<std::atomic<int>> aborts = std::make_shared<std::atomic<int>>(0);
};

class SilentRuntime : private SilentParts, public LinkedRuntime {
protected:
    SilentRuntime() : LinkedRuntime(std::make_unique<Silent>(SilentParts::gate, SilentParts::aborts)) {}
    ~SilentRuntime() override { gate().open(); }

    Gate& gate() { return *SilentParts::gate; }
    int aborts() const { return *SilentParts::aborts; }
    /// As RuntimeOptions::stall_seconds, from now on.
    void watch_for_stalls(std::chrono::milliseconds limit)
    {
        const auto state = detail::RuntimeAccess::state(runtime);
        state->jobs->watch_for_stalls(limit, [s = state.get()](const void* carrier) { return s->stalled(carrier); });
    }
    /// The code of the error of a product that begins while the gate is closed.
    ErrorCode ends_by(const JobOptions& options, const std::function<void()>& then)
    {
        gate().close();
        auto done = matrix.apply_async(1.0, x, 0.0, y, options);
        then();
        try {
            done.get();
        } catch (const Error& e) {
            return e.code();
        }
        return ErrorCode::internal;
    }

    DistributedVector<double> x = matrix.make_x(Layout::rows);
    DistributedVector<double> y = matrix.make_y();
};

TEST_F(SilentRuntime, DataThatNeverArriveAreANamedErrorAndAnotherTransportTakesOver)
{
    x.upload(entries.data());
    EXPECT_TRUE(multiplies(x, y));
    gate().close();
    watch_for_stalls(std::chrono::milliseconds(20));
    const std::string error = error_of([&] { matrix.apply(1.0, x, 0.0, y); });
    EXPECT_EQ(error.substr(0, 4), "job ") << error;
    EXPECT_NE(error.find(" (product) made no progress for 0.02 s; it is not done on "), std::string::npos) << error;
    EXPECT_NE(error.find("host:1 (1 thread)"), std::string::npos) << error;
    EXPECT_NE(error.find(": transport nccl failed between host:0 (1 thread), host:1 (1 thread), host:2 (1 thread): "
                         "data did not arrive"),
              std::string::npos)
        << error;
    // What comes while the devices stand still is refused by that error, also with arrays of the caller.
    EXPECT_EQ(error_of([&] { matrix.apply(1.0, x, 0.0, y); }), error);
    std::vector<double> result(static_cast<std::size_t>(a.rows));
    EXPECT_EQ(error_of([&] { matrix.apply(1.0, entries.data(), 0.0, result.data()); }), error);

    watch_for_stalls(std::chrono::hours(1));
    gate().open();
    bool right = false;
    while (!right) {
        try {
            right = multiplies(x, y);
            EXPECT_TRUE(right);
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::device);
            std::this_thread::yield();
        }
    }
    EXPECT_GE(aborts(), 3);
    EXPECT_EQ(runtime.metrics().transports_replaced, 1u);
    EXPECT_EQ(runtime.metrics().transports, std::vector<std::string>{"host"});
}

TEST_F(SilentRuntime, ADeadlineOrAStopEndsAProductWhoseDataNeverArrive)
{
    x.upload(entries.data());
    JobOptions late;
    late.deadline = std::chrono::steady_clock::now() + std::chrono::hours(1);
    std::stop_source stop;
    late.stop = stop.get_token();
    EXPECT_EQ(ends_by(late, [&] { stop.request_stop(); }), ErrorCode::cancelled);
    gate().open();
    EXPECT_TRUE(multiplies(x, y));

    JobOptions soon;
    do {
        // Late before the devices have it, on a machine that is busy: again.
        soon.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
        try {
            EXPECT_EQ(ends_by(soon, [] {}), ErrorCode::deadline);
            break;
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::deadline);
        }
    } while (true);
    gate().open();
    EXPECT_TRUE(multiplies(x, y));
    EXPECT_EQ(runtime.metrics().transports_replaced, 0u);
}

TEST_F(SilentRuntime, EndsAlthoughDataNeverArrive)
{
    x.upload(entries.data());
    EXPECT_TRUE(multiplies(x, y));
    gate().close();
    watch_for_stalls(std::chrono::milliseconds(20));
    EXPECT_NE(error_of([&] { matrix.apply(1.0, x, 0.0, y); }).find("data did not arrive"), std::string::npos);
    matrix = DistributedMatrix<double>();
    x = DistributedVector<double>();
    y = DistributedVector<double>();
    detail::RuntimeState* const left = detail::RuntimeAccess::state(runtime).get();
    {
        const Runtime gone = std::move(runtime);
    }
    // It was left to the worker that is still at it. What else nobody does: to clean up behind that one.
    EXPECT_FALSE(left->jobs->idle());
    gate().open();
    while (!left->jobs->idle()) {
        std::this_thread::yield();
    }
    EXPECT_TRUE(left->stop());
    delete left;
}

TEST(Stalls, AJobThatUsesTheCallersMemoryIsWaitedForHoweverLongItStandsStill)
{
    auto workers = engine::test::host_workers(3);
    JobQueue jobs(workers, true);
    Gate gate;
    gate.close();
    jobs.watch_for_stalls(std::chrono::milliseconds(10), {});
    auto first = jobs.submit([&](Worker& worker, Rendezvous& meeting) {
        if (worker.rank() == 1) {
            gate.pass();
        }
        meeting.arrive_and_wait();
    });
    while (!jobs.abandoned()) {
        std::this_thread::yield();
    }
    EXPECT_NE(first.wait_for(std::chrono::seconds(0)), std::future_status::ready);
    jobs.watch_for_stalls(std::chrono::hours(1), {});
    gate.open();
    EXPECT_NE(error_of([&] { first.get(); }).find("made no progress for 0.01 s; it is not done on "),
              std::string::npos);
    jobs.submit([](Worker&, Rendezvous& meeting) { meeting.arrive_and_wait(); }).get();
}

}  // namespace
}  // namespace rmsp::transport
