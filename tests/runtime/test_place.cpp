#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/error.hpp>
#include <runtime/engine/job_queue.hpp>

#include "polled_device.hpp"
#include "workers.hpp"

/// Jobs that only queue work, on a device of which there is one: by the thread that asks for them, in the worker's
/// place.
namespace rmsp::engine::test {
namespace {

JobTerms queueing()
{
    JobTerms terms;
    terms.only_queues = true;
    return terms;
}

/// Calls f() until it is true.
template <class F>
void wait_until(const F& f)
{
    while (!f()) {
        std::this_thread::yield();
    }
}

TEST(Place, TheCallingThreadQueuesWhereNothingIsBefore)
{
    const auto asked = std::make_shared<Asked>();
    auto workers = polled_worker(asked);
    JobQueue jobs(workers, false);
    for (int i = 1; i <= 20; ++i) {
        std::thread::id by;
        jobs.submit([&](Worker&, Rendezvous&) { by = std::this_thread::get_id(); }, {}, queueing()).get();
        EXPECT_EQ(by, std::this_thread::get_id());
        EXPECT_EQ(asked->visits, i);
        wait_until([&] { return asked->left == i; });
        jobs.submit([&](Worker&, Rendezvous&) { by = std::this_thread::get_id(); }).get();
        EXPECT_NE(by, std::this_thread::get_id());
    }
}

TEST(Place, HostDevicesQueuesWithLanesAndSeveralDevicesHaveTheirOwnThreads)
{
    const auto runs_here = [](JobQueue& jobs) {
        std::atomic<bool> here{false};
        const auto caller = std::this_thread::get_id();
        jobs.submit([&](Worker&, Rendezvous&) { here = here || std::this_thread::get_id() == caller; }, {}, queueing())
            .get();
        return here.load();
    };
    {
        auto workers = host_workers(1);
        JobQueue jobs(workers, true);
        EXPECT_FALSE(runs_here(jobs));
    }
    {
        auto workers = polled_worker(std::make_shared<Asked>());
        workers.push_back(std::move(polled_worker(std::make_shared<Asked>()).front()));
        JobQueue jobs(workers, false);
        EXPECT_FALSE(runs_here(jobs));
    }
    auto workers = polled_worker(std::make_shared<Asked>());
    JobQueue jobs(workers, false);
    EXPECT_TRUE(runs_here(jobs));
    static_cast<void>(jobs.metrics());
    EXPECT_FALSE(runs_here(jobs));
}

TEST(Place, JobsOfManyThreadsKeepTheirOrderAndAreAlone)
{
    constexpr int threads = 8;
    constexpr int each = 500;
    auto workers = polled_worker(std::make_shared<Asked>());
    JobQueue jobs(workers, false);
    std::vector<std::uint64_t> order;  // no lock: jobs are alone
    std::atomic<int> inside{0};
    std::atomic<int> overlaps{0};
    std::atomic<int> here{0};
    std::atomic<int> ended{0};
    std::vector<std::thread> callers;
    for (int t = 0; t < threads; ++t) {
        callers.emplace_back([&, t] {
            std::future<void> last;
            const auto caller = std::this_thread::get_id();
            for (int i = 0; i < each; ++i) {
                JobTerms terms;
                terms.only_queues = (i + t) % 3 != 0;
                terms.brief = (i + t) % 5 != 0;
                terms.host_data = (i + t) % 11 == 0;
                last = jobs.submit(
                    [&, caller](Worker&, Rendezvous& meeting) {
                        overlaps += ++inside == 1 ? 0 : 1;
                        order.push_back(meeting.job());
                        here += std::this_thread::get_id() == caller ? 1 : 0;
                        --inside;
                    },
                    [&] { ++ended; }, terms);
                if (i % 7 == t % 7) {
                    last.get();
                }
            }
            if (last.valid()) {
                last.get();
            }
        });
    }
    for (std::thread& caller : callers) {
        caller.join();
    }
    jobs.drain();
    EXPECT_EQ(overlaps, 0);
    EXPECT_EQ(ended, threads * each);
    ASSERT_EQ(order.size(), std::size_t{threads} * each);
    for (std::size_t i = 0; i < order.size(); ++i) {
        ASSERT_EQ(order[i], i + 1);
    }
    EXPECT_GT(here, 0);
}

TEST(Place, AnErrorReachesTheFutureAndTheNextJobGoesOn)
{
    const auto asked = std::make_shared<Asked>();
    auto workers = polled_worker(asked);
    JobQueue jobs(workers, false);
    auto thrown = jobs.submit([](Worker&, Rendezvous&) { throw Error(ErrorCode::device, "as asked"); }, {}, queueing());
    EXPECT_THROW(thrown.get(), Error);
    asked->failing_record = asked->records + 2;
    auto before = jobs.submit([](Worker&, Rendezvous&) {}, {}, queueing());
    auto failed = jobs.submit([](Worker&, Rendezvous&) {}, {}, queueing());
    auto behind = jobs.submit([](Worker&, Rendezvous&) {}, {}, queueing());
    EXPECT_NO_THROW(before.get());
    EXPECT_THROW(failed.get(), Error);
    EXPECT_NO_THROW(behind.get());
}

TEST(Place, JobsOfALostDeviceFailByItsName)
{
    auto workers = polled_worker(std::make_shared<Asked>());
    JobQueue jobs(workers, false);
    auto before = jobs.submit([](Worker&, Rendezvous&) {}, {}, queueing());
    workers.front()->device().lose("a test says so");
    auto after = jobs.submit([](Worker&, Rendezvous&) {}, {}, queueing());
    EXPECT_NO_THROW(before.get());
    try {
        after.get();
        FAIL() << "no error";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::device);
        EXPECT_NE(std::string(e.what()).find("is lost"), std::string::npos) << e.what();
    }
}

TEST(Place, TheEndWaitsForAThreadThatIsThere)
{
    for (int i = 0; i < 100; ++i) {
        std::atomic<bool> at_it{false};
        auto workers = polled_worker(std::make_shared<Asked>());
        auto jobs = std::make_unique<JobQueue>(workers, false);
        std::thread caller([&, queue = jobs.get()] {
            static_cast<void>(queue->submit([&](Worker&, Rendezvous&) { at_it = true; }, {}, queueing()));
        });
        wait_until([&] { return at_it.load(); });
        jobs.reset();
        workers.clear();
        caller.join();
    }
}

}  // namespace
}  // namespace rmsp::engine::test
