#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <core/epoch.hpp>
#include <rmsp/error.hpp>
#include <runtime/engine/job_queue.hpp>

#include "workers.hpp"

namespace rmsp::engine::test {
namespace {

TEST(Epoch, EachAdvanceWakesAllWhoSleep)
{
    constexpr std::uint32_t rounds = 300;
    core::Epoch epoch;
    std::atomic<std::uint32_t> woken{0};
    std::vector<std::thread> sleepers;
    for (int i = 0; i < 3; ++i) {
        sleepers.emplace_back([&] {
            for (std::uint32_t round = 0; round < rounds; ++round) {
                epoch.wait_past(round);
                ++woken;
            }
        });
    }
    for (std::uint32_t round = 0; round < rounds; ++round) {
        // One who sleeps on would keep the others from going on.
        while (woken.load() != 3 * round) {
            std::this_thread::yield();
        }
        EXPECT_EQ(epoch.now(), round);
        epoch.advance();
    }
    for (std::thread& sleeper : sleepers) {
        sleeper.join();
    }
    EXPECT_EQ(woken.load(), 3 * rounds);
}

TEST(Worker, RunsTasksInOrder)
{
    auto workers = host_workers(1);
    std::vector<int> seen;
    for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE(workers[0]->post([&seen, i](Worker&) { seen.push_back(i); }));
    }
    workers[0]->stop();
    ASSERT_EQ(seen.size(), 100u);
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
    }
    EXPECT_FALSE(workers[0]->post([](Worker&) {}));
}

TEST(Worker, ADeviceThatCannotOpenIsReportedAndTheThreadEnds)
{
    Worker worker(0, Placement{},
                  []() -> std::unique_ptr<Device> { throw Error(ErrorCode::device, "no such device"); });
    EXPECT_THROW(worker.wait_until_open(), Error);
    EXPECT_FALSE(worker.post([](Worker&) {}));
}

TEST(Worker, StrictBindingFailsWhereAThreadCannotBeBound)
{
#ifdef _OPENMP
    const auto teams = {false, true};
#else
    const auto teams = {false};  // there are none
#endif
    for (const bool of_team : teams) {
        Placement placement;
        placement.strict = true;
        (of_team ? placement.threads : placement.cpus) = {1 << 20};
        DeviceInfo info;
        info.compute_units = 1;
        info.placement = placement;
        for (const bool strict : {true, false}) {
            placement.strict = info.placement.strict = strict;
            Worker worker(0, placement, [info] { return make_host_device(info); });
            try {
                worker.wait_until_open();
                EXPECT_FALSE(strict);
            } catch (const Error& e) {
                EXPECT_TRUE(strict) << e.what();
                EXPECT_EQ(e.code(), ErrorCode::usage);
                EXPECT_NE(std::string(e.what()).find("strict binding"), std::string::npos) << e.what();
            }
        }
    }
}

TEST(Worker, StopsAtOnceWithoutTasks)
{
    for (int i = 0; i < 50; ++i) {
        auto workers = host_workers(3);
    }
}

TEST(Jobs, EveryWorkerMeets)
{
    auto workers = host_workers(3);
    JobQueue jobs(workers, true);
    std::atomic<int> arrived{0};
    std::atomic<bool> all_there{true};
    bool finished = false;
    jobs.submit(
            [&](Worker&, Rendezvous& meeting) {
                for (int round = 1; round <= 200; ++round) {
                    ++arrived;
                    meeting.arrive_and_wait();
                    if (arrived.load() < 3 * round) {
                        all_there = false;
                    }
                    meeting.arrive_and_wait();
                }
            },
            [&] { finished = true; })
        .get();
    EXPECT_TRUE(all_there.load());
    EXPECT_TRUE(finished);
}

TEST(Jobs, OneAtATimeTakesTurnsAlsoAtMeetings)
{
    auto workers = host_workers(3);
    JobQueue jobs(workers, true, {}, true);
    std::atomic<int> inside{0};
    std::atomic<bool> alone{true};
    const auto work = [&] {
        alone = ++inside == 1 && alone.load();
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        --inside;
    };
    for (int i = 0; i < 20; ++i) {
        jobs.submit([&](Worker&, Rendezvous& meeting) {
            work();
            meeting.arrive_and_wait();
            work();
        });
    }
    EXPECT_THROW(jobs.submit([&](Worker& worker, Rendezvous& meeting) {
                         if (worker.rank() == 1) {
                             throw std::runtime_error("device broke");
                         }
                         meeting.arrive_and_wait();
                     })
                     .get(),
                 std::runtime_error);
    jobs.submit([&](Worker&, Rendezvous&) { work(); }).get();
    EXPECT_TRUE(alone.load());
}

TEST(Jobs, AnExceptionReachesTheFutureReleasesTheOthersAndLeavesTheQueueUsable)
{
    auto workers = host_workers(3);
    JobQueue jobs(workers, true);
    for (int failing = 0; failing < 3; ++failing) {
        auto future = jobs.submit([failing](Worker& worker, Rendezvous& meeting) {
            if (worker.rank() == failing) {
                throw std::runtime_error("device broke");
            }
            meeting.arrive_and_wait();
        });
        try {
            future.get();
            FAIL() << "no exception";
        } catch (const std::runtime_error& e) {
            EXPECT_STREQ(e.what(), "device broke");
        }
        std::atomic<int> ran{0};
        jobs.submit([&](Worker&, Rendezvous& meeting) {
                meeting.arrive_and_wait();
                ++ran;
            })
            .get();
        EXPECT_EQ(ran.load(), 3);
    }
}

TEST(Jobs, AMeetingThatFailsWhileOthersArriveKeepsNobody)
{
    auto workers = host_workers(2);
    JobQueue jobs(workers, true);
    for (int i = 0; i < 2000; ++i) {
        auto future = jobs.submit([](Worker& worker, Rendezvous& meeting) {
            if (worker.rank() == 0) {
                throw std::runtime_error("device broke");
            }
            meeting.arrive_and_wait();
        });
        ASSERT_EQ(future.wait_for(std::chrono::seconds(60)), std::future_status::ready);
        EXPECT_THROW(future.get(), std::runtime_error);
    }
}

TEST(Jobs, ABodyThatCannotBeKeptLeavesTheQueueUsable)
{
    // Copying it into the job fails, as it does without memory.
    struct Heavy {
        Heavy() = default;
        Heavy(const Heavy&) { throw std::bad_alloc(); }
        void operator()(Worker&, Rendezvous&) const {}
    };
    auto workers = host_workers(3);
    JobQueue jobs(workers, true);
    for (int i = 0; i < 3; ++i) {
        const Heavy heavy;
        EXPECT_THROW(static_cast<void>(jobs.submit(heavy, {}, true)), std::bad_alloc);
        // A ticket that was counted for it would keep this one waiting.
        jobs.submit([](Worker&, Rendezvous& meeting) { meeting.arrive_and_wait(); }, {}, true).get();
    }
}

TEST(Worker, TasksArePostedWithoutAllocatingAndToldWhenTheyAreDone)
{
    auto workers = host_workers(1);
    Tasks tasks(2);
    std::atomic<int> done{0};
    for (Task& task : tasks) {
        task.run.set([](Worker&) {});
        task.done.set([&](std::exception_ptr error) { done += error ? 0 : 1; });
    }
    EXPECT_TRUE(workers[0]->post(tasks));
    EXPECT_EQ(tasks.size(), 1u);
    EXPECT_TRUE(workers[0]->post(tasks));
    workers[0]->stop();
    EXPECT_EQ(done.load(), 2);
    Tasks late(1);
    EXPECT_FALSE(workers[0]->post(late));
    EXPECT_EQ(late.size(), 1u);
}

TEST(Jobs, FinishIsNotRunAfterAnErrorAndItsOwnErrorIsReported)
{
    auto workers = host_workers(2);
    JobQueue jobs(workers, true);
    bool finished = false;
    EXPECT_THROW(
        jobs.submit([](Worker&, Rendezvous&) { throw std::runtime_error("body"); }, [&] { finished = true; }, true)
            .get(),
        std::runtime_error);
    EXPECT_FALSE(finished);
    EXPECT_THROW(jobs.submit([](Worker&, Rendezvous&) {}, [] { throw std::runtime_error("finish"); }, true).get(),
                 std::runtime_error);
    // A failed job that touches host data must not hold up the next one.
    jobs.submit([](Worker&, Rendezvous&) {}, {}, true).get();
}

TEST(Jobs, ManyThreadsSubmit)
{
    auto workers = host_workers(3);
    JobQueue jobs(workers, true);
    std::atomic<int> ran{0};
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&, t] {
                for (int i = 0; i < 100; ++i) {
                    jobs.submit(
                            [&](Worker&, Rendezvous& meeting) {
                                meeting.arrive_and_wait();
                                ++ran;
                            },
                            {}, (i + t) % 2 == 0)
                        .get();
                }
            });
        }
    }
    EXPECT_EQ(ran.load(), 3 * 400);
}

TEST(Jobs, AreRefusedAfterClose)
{
    auto workers = host_workers(1);
    JobQueue jobs(workers, true);
    jobs.close();
    EXPECT_THROW(jobs.submit([](Worker&, Rendezvous&) {}), Error);
}

}  // namespace
}  // namespace rmsp::engine::test
