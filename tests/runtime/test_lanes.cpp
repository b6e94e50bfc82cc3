#include <algorithm>
#include <chrono>
#include <future>
#include <semaphore>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/error.hpp>
#include <runtime/engine/job_queue.hpp>

#include "workers.hpp"

namespace rmsp::engine::test {
namespace {

using std::chrono::milliseconds;

/// Keeps the workers of a queue busy until it is opened, so that what is submitted meanwhile waits.
class Gate {
public:
    explicit Gate(JobQueue& jobs)
    {
        for (auto& done : done_) {
            done = jobs.submit([this](Worker& worker, Rendezvous&) {
                if (worker.rank() == 0) {
                    opened_.acquire();
                }
            });
        }
        // While the workers are at a job for so long, they are given no more than these two.
        std::this_thread::sleep_for(milliseconds(2));
    }
    ~Gate() { open(); }
    void open()
    {
        for (auto& done : done_) {
            if (done.valid()) {
                opened_.release();
            }
        }
        for (auto& done : done_) {
            if (done.valid()) {
                done.get();
            }
        }
    }

private:
    std::counting_semaphore<> opened_{0};
    std::future<void> done_[2];
};

ErrorCode code_of(std::future<void>& future)
{
    if (future.wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
        ADD_FAILURE() << "the job hangs";
        return ErrorCode::internal;
    }
    try {
        future.get();
    } catch (const Error& e) {
        return e.code();
    }
    ADD_FAILURE() << "no error";
    return ErrorCode::internal;
}

JobTerms endable()
{
    JobTerms terms;
    terms.may_end_early = true;
    return terms;
}

TEST(Jobs, OfAHigherPriorityGoFirstAndOthersFollow)
{
    auto workers = host_workers(2);
    JobQueue jobs(workers, true);
    std::vector<std::string> order;
    std::vector<std::future<void>> done;
    const auto note = [&](const std::string& name) {
        return [&order, name](Worker& worker, Rendezvous&) {
            if (worker.rank() == 0) {
                order.push_back(name);
            }
        };
    };
    {
        Gate gate(jobs);
        for (const auto& [name, priority] :
             {std::pair{"low", Priority::low}, {"normal", Priority::normal}, {"high", Priority::high}}) {
            // A lane each: those of one thread keep their order.
            JobOptions options;
            options.priority = priority;
            options.lane = static_cast<std::uint64_t>(priority) + 1;
            const JobScope scope(options);
            done.push_back(jobs.submit(note(name)));
        }
        EXPECT_EQ(jobs.metrics().waiting, 3);
        gate.open();
        for (auto& one : done) {
            one.get();
        }
    }
    EXPECT_EQ(order, (std::vector<std::string>{"high", "normal", "low"}));
}

TEST(Jobs, ThatWaitAreCancelledAtOnceAndNeverRun)
{
    auto workers = host_workers(2);
    JobQueue jobs(workers, true);
    std::atomic<int> ran{0};
    {
        Gate gate(jobs);
        std::stop_source source;
        JobOptions options;
        options.stop = source.get_token();
        std::future<void> first;
        std::future<void> second;
        {
            const JobScope scope(options);
            first = jobs.submit([&](Worker&, Rendezvous&) { ++ran; }, {}, endable());
            second = jobs.submit([&](Worker&, Rendezvous&) { ++ran; });  // does not end early
        }
        auto third = jobs.submit([&](Worker&, Rendezvous&) { ++ran; }, {}, true);
        source.request_stop();
        EXPECT_EQ(code_of(first), ErrorCode::cancelled);
        EXPECT_EQ(ran.load(), 0);
        {
            const JobScope scope(options);
            EXPECT_THROW(jobs.submit([](Worker&, Rendezvous&) {}, {}, endable()), Error);
        }
        gate.open();
        second.get();
        third.get();
    }
    EXPECT_EQ(ran.load(), 4);
    EXPECT_EQ(jobs.metrics().cancelled, 1u);
}

TEST(Jobs, ThatRunAreCancelledAtTheirStopPoints)
{
    auto workers = host_workers(2);
    JobQueue jobs(workers, true);
    std::stop_source source;
    JobOptions options;
    options.stop = source.get_token();
    std::atomic<int> steps{0};
    std::future<void> done;
    {
        const JobScope scope(options);
        done = jobs.submit(
            [&](Worker&, Rendezvous& meeting) {
                while (true) {
                    ++steps;
                    meeting.stop_point();
                    meeting.arrive_and_wait();
                }
            },
            {}, endable());
    }
    while (steps.load() < 100) {
        std::this_thread::yield();
    }
    source.request_stop();
    EXPECT_EQ(code_of(done), ErrorCode::cancelled);
    jobs.submit([](Worker&, Rendezvous& meeting) { meeting.arrive_and_wait(); }).get();
}

TEST(Jobs, EndAtTheirDeadlineWhetherTheyWaitOrRun)
{
    auto workers = host_workers(2);
    JobQueue jobs(workers, true);
    JobOptions options;
    {
        Gate gate(jobs);
        options.deadline = std::chrono::steady_clock::now() + milliseconds(20);
        const JobScope scope(options);
        auto waits = jobs.submit([](Worker&, Rendezvous&) {}, {}, endable());
        EXPECT_EQ(code_of(waits), ErrorCode::deadline);
        EXPECT_THROW(jobs.submit([](Worker&, Rendezvous&) {}, {}, endable()), Error);
    }
    options.deadline = std::chrono::steady_clock::now() + milliseconds(20);
    const JobScope scope(options);
    auto runs = jobs.submit(
        [](Worker&, Rendezvous& meeting) {
            while (true) {
                meeting.stop_point();
            }
        },
        {}, endable());
    EXPECT_EQ(code_of(runs), ErrorCode::deadline);
    EXPECT_EQ(jobs.metrics().expired, 2u);
}

TEST(Jobs, AFullQueueRefusesOrWaits)
{
    auto workers = host_workers(1);
    JobQueue jobs(workers, true, {}, false, 2);
    std::vector<std::future<void>> done;
    JobOptions refuse;
    refuse.when_full = WhenFull::refuse;
    std::jthread waits;
    std::atomic<bool> accepted{false};
    {
        Gate gate(jobs);
        done.push_back(jobs.submit([](Worker&, Rendezvous&) {}));
        done.push_back(jobs.submit([](Worker&, Rendezvous&) {}));
        {
            const JobScope scope(refuse);
            try {
                jobs.submit([](Worker&, Rendezvous&) {});
                ADD_FAILURE() << "accepted";
            } catch (const Error& e) {
                EXPECT_EQ(e.code(), ErrorCode::busy);
                EXPECT_NE(std::string(e.what()).find("2 jobs wait"), std::string::npos) << e.what();
            }
        }
        {
            JobOptions options;
            options.deadline = std::chrono::steady_clock::now() + milliseconds(10);
            const JobScope scope(options);
            EXPECT_THROW(jobs.submit([](Worker&, Rendezvous&) {}, {}, endable()), Error);
        }
        waits = std::jthread([&] {
            auto last = jobs.submit([](Worker&, Rendezvous&) {});
            accepted = true;
            last.get();
        });
        std::this_thread::sleep_for(milliseconds(10));
        EXPECT_FALSE(accepted.load());
        gate.open();
    }
    waits.join();
    EXPECT_TRUE(accepted.load());
    EXPECT_EQ(jobs.metrics().refused, 2u);
}

TEST(Jobs, ADrainedQueueHasEndedAllAndAcceptsNone)
{
    auto workers = host_workers(2);
    JobQueue jobs(workers, true, {}, false, 100);
    std::atomic<int> ran{0};
    std::vector<std::future<void>> done;
    {
        Gate gate(jobs);
        for (int i = 0; i < 5; ++i) {
            done.push_back(jobs.submit([&](Worker&, Rendezvous&) { ++ran; }));
        }
        std::jthread opens([&] {
            std::this_thread::sleep_for(milliseconds(30));
            gate.open();
        });
        EXPECT_EQ(jobs.drain(std::chrono::steady_clock::now() + milliseconds(5)), 5);
    }
    for (auto& one : done) {
        EXPECT_EQ(code_of(one), ErrorCode::cancelled);
    }
    EXPECT_EQ(ran.load(), 0);
    EXPECT_THROW(jobs.submit([](Worker&, Rendezvous&) {}), Error);
}

TEST(Jobs, ThatALostDeviceHasNoPartInGoOnAndTheOthersNameIt)
{
    auto workers = host_workers(3);
    JobQueue jobs(workers, true);
    workers[2]->device().lose("injected");
    JobTerms first_two;
    first_two.devices = 2;
    for (int i = 0; i < 100; ++i) {
        std::atomic<int> ran{0};
        jobs.submit(
                [&](Worker&, Rendezvous& meeting) {
                    meeting.arrive_and_wait();
                    ++ran;
                    meeting.arrive_and_wait();
                },
                {}, first_two)
            .get();
        EXPECT_EQ(ran.load(), 2);
    }
    auto all = jobs.submit([](Worker&, Rendezvous& meeting) { meeting.arrive_and_wait(); }, {}, true);
    try {
        all.get();
        FAIL() << "no error";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::device);
        EXPECT_NE(std::string(e.what()).find("host:2"), std::string::npos) << e.what();
        EXPECT_NE(std::string(e.what()).find("is lost: injected"), std::string::npos) << e.what();
    }
    EXPECT_TRUE(jobs.metrics().devices[2].lost);
}

TEST(Jobs, WithoutOptionsAreGivenToTheWorkersAsTheyComeUntilOneHasOptions)
{
    auto workers = host_workers(2);
    JobQueue jobs(workers, true);
    std::vector<int> order;
    std::vector<std::future<void>> done;
    const auto note = [&](int number) {
        return [&order, number](Worker& worker, Rendezvous&) {
            if (worker.rank() == 0) {
                order.push_back(number);
            }
        };
    };
    {
        Gate gate(jobs);
        for (int i = 0; i < 300; ++i) {
            done.push_back(jobs.submit(note(i)));
        }
        EXPECT_EQ(jobs.metrics().running, 302);
        {
            const JobScope scope(JobOptions{.priority = Priority::high});
            done.push_back(jobs.submit(note(300)));
        }
        done.push_back(jobs.submit(note(301)));
        EXPECT_EQ(jobs.metrics().waiting, 2);
        gate.open();
        for (auto& one : done) {
            one.get();
        }
    }
    ASSERT_EQ(order.size(), 302u);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    const Metrics metrics = jobs.metrics();
    EXPECT_EQ(metrics.accepted, 304u);
    EXPECT_EQ(metrics.finished, 304u);
    EXPECT_EQ(metrics.waiting + metrics.running, 0);
    EXPECT_EQ(metrics.run.count, 2u);
}

TEST(Jobs, ThatFailAreCountedAlsoWhereNobodyHadAsked)
{
    auto workers = host_workers(2);
    JobQueue jobs(workers, true);
    for (int i = 0; i < 10; ++i) {
        auto done = jobs.submit([i](Worker&, Rendezvous&) {
            if (i % 5 == 0) {
                throw Error(ErrorCode::device, "injected");
            }
        });
        done.wait();
    }
    const Metrics metrics = jobs.metrics();
    EXPECT_EQ(metrics.accepted, 10u);
    EXPECT_EQ(metrics.failed, 2u);
    EXPECT_EQ(metrics.finished, 8u);
    EXPECT_EQ(metrics.running, 0);
}

TEST(Jobs, OfManyThreadsWithStopsDeadlinesAndErrorsAllEnd)
{
    auto workers = host_workers(3);
    JobQueue jobs(workers, true, {}, false, 16);
    std::atomic<std::uint64_t> ended{0};
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 6; ++t) {
            threads.emplace_back([&, t] {
                for (int i = 0; i < 60; ++i) {
                    std::stop_source source;
                    JobOptions options;
                    options.stop = source.get_token();
                    options.priority = static_cast<Priority>(i % 3);
                    options.lane = i % 5 == 0 ? 7 : 0;
                    options.when_full = i % 7 == 0 ? WhenFull::refuse : WhenFull::wait;
                    if (i % 4 == 0) {
                        options.deadline = std::chrono::steady_clock::now() + std::chrono::microseconds(50 * (i % 9));
                    }
                    JobTerms terms = endable();
                    terms.host_data = (i + t) % 2 == 0;
                    try {
                        std::future<void> done;
                        {
                            const JobScope scope(options);
                            done = jobs.submit(
                                [&, i](Worker& worker, Rendezvous& meeting) {
                                    meeting.arrive_and_wait();
                                    meeting.stop_point();
                                    if (i % 11 == 0 && worker.rank() == t % 3) {
                                        throw Error(ErrorCode::device, "injected");
                                    }
                                    meeting.arrive_and_wait();
                                },
                                {}, terms);
                        }
                        if (i % 3 == 0) {
                            source.request_stop();
                        }
                        ASSERT_EQ(done.wait_for(std::chrono::seconds(60)), std::future_status::ready);
                        done.get();
                    } catch (const Error& e) {
                        EXPECT_TRUE(e.code() == ErrorCode::cancelled || e.code() == ErrorCode::deadline ||
                                    e.code() == ErrorCode::busy || e.code() == ErrorCode::device)
                            << e.what();
                    }
                    ++ended;
                }
            });
        }
    }
    EXPECT_EQ(ended.load(), 360u);
    const Metrics metrics = jobs.metrics();
    EXPECT_EQ(metrics.accepted + metrics.refused, 360u);
    EXPECT_EQ(metrics.finished + metrics.failed + metrics.cancelled + metrics.expired, metrics.accepted);
    EXPECT_EQ(metrics.waiting + metrics.running, 0);
}

}  // namespace
}  // namespace rmsp::engine::test
