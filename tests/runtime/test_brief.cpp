#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/error.hpp>
#include <runtime/engine/job_queue.hpp>

#include "polled_device.hpp"

/// Jobs whose work takes microseconds: where others wait to be queued, the device is asked once for the ends of
/// several.
namespace rmsp::engine::test {
namespace {

constexpr int most_together = 8;

JobTerms brief()
{
    JobTerms terms;
    terms.brief = true;
    return terms;
}

/// A job that keeps the worker until it is opened, so that what is submitted meanwhile waits.
class Gate {
public:
    explicit Gate(JobQueue& jobs) : job_(jobs.submit([this](Worker&, Rendezvous&) { open_.get_future().wait(); })) {}
    void open()
    {
        open_.set_value();
        job_.get();
    }

private:
    std::promise<void> open_;
    std::future<void> job_;
};

template <class F>
std::vector<std::future<void>> submit(JobQueue& jobs, int count, const F& body)
{
    std::vector<std::future<void>> futures;
    for (int i = 0; i < count; ++i) {
        futures.push_back(jobs.submit([body](Worker& worker, Rendezvous&) { body(worker); }, {}, brief()));
    }
    return futures;
}

void expect_error(std::future<void>& future, const std::string& words)
{
    try {
        future.get();
        FAIL() << "no error";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::device);
        EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
}

TEST(BriefJobs, ThatWaitShareAnEvent)
{
    const auto asked = std::make_shared<Asked>();
    auto workers = polled_worker(asked);
    JobQueue jobs(workers, false);
    Gate gate(jobs);
    int ran = 0;  // no lock: jobs are alone
    std::vector<std::uint64_t> ended;
    std::vector<std::future<void>> futures;
    constexpr int count = 10 * most_together + 3;
    for (int i = 0; i < count; ++i) {
        futures.push_back(jobs.submit([&](Worker&, Rendezvous&) { ++ran; }, [&, i] { ended.push_back(i); }, brief()));
    }
    gate.open();
    for (auto& future : futures) {
        future.get();
    }
    EXPECT_EQ(ran, count);
    EXPECT_EQ(asked->records, 1 + 10 + 1);
    ASSERT_EQ(ended.size(), std::size_t{count});
    for (std::size_t i = 0; i < ended.size(); ++i) {
        EXPECT_EQ(ended[i], i);
    }
}

/// A product of one launch, which is counted alone where it is not kept.
void launch(Worker& worker, Asked& asked)
{
    const kernels::Context context = worker.launching_context();
    if (context.launches != nullptr) {
        static_cast<CountedLaunches*>(context.launches)->keep();
    } else {
        asked.launched.push_back(1);
    }
}

TEST(BriefJobs, ThatWaitAreLaunchedTogether)
{
    const auto asked = std::make_shared<Asked>();
    auto workers = polled_worker(asked);
    JobQueue jobs(workers, false);
    Gate gate(jobs);
    auto futures = submit(jobs, 2 * most_together + 3, [&](Worker& worker) { launch(worker, *asked); });
    gate.open();
    for (auto& future : futures) {
        future.get();
    }
    // The device has the gate's end to tell.
    EXPECT_EQ(asked->launched, (std::vector<int>{most_together, most_together, 3}));
}

TEST(BriefJobs, AreLaunchedBeforeOthersAskForTheStream)
{
    const auto asked = std::make_shared<Asked>();
    auto workers = polled_worker(asked);
    JobQueue jobs(workers, false);
    Gate gate(jobs);
    auto futures = submit(jobs, 3, [&](Worker& worker) { launch(worker, *asked); });
    auto other = jobs.submit([&](Worker&, Rendezvous&) { asked->launched.push_back(-1); });
    auto brief_others = submit(jobs, 2, [&](Worker& worker) { launch(worker, *asked); });
    auto brief_other = submit(jobs, 1, [&](Worker& worker) {
        static_cast<void>(worker.stream());
        asked->launched.push_back(-2);
    });
    gate.open();
    for (auto* group : {&futures, &brief_others, &brief_other}) {
        for (auto& future : *group) {
            EXPECT_NO_THROW(future.get());
        }
    }
    EXPECT_NO_THROW(other.get());
    EXPECT_EQ(asked->launched, (std::vector<int>{3, -1, 2, -2}));
}

TEST(BriefJobs, AreToldThatTheirLaunchFailed)
{
    for (const bool before_another : {false, true}) {
        const auto asked = std::make_shared<Asked>();
        auto workers = polled_worker(asked);
        JobQueue jobs(workers, false);
        Gate gate(jobs);
        asked->failing_launch = 1;
        auto futures = submit(jobs, 3, [&](Worker& worker) { launch(worker, *asked); });
        std::future<void> other;
        if (before_another) {
            other = jobs.submit([](Worker&, Rendezvous&) {});
        }
        gate.open();
        for (auto& future : futures) {
            expect_error(future, "nothing can be launched");
        }
        if (before_another) {
            EXPECT_NO_THROW(other.get());
        }
        auto behind = submit(jobs, 1, [&](Worker& worker) { launch(worker, *asked); });
        EXPECT_NO_THROW(behind[0].get());
    }
}

TEST(BriefJobs, ThatWereNotLaunchedWhenTheDeviceIsLostFail)
{
    const auto asked = std::make_shared<Asked>();
    auto workers = polled_worker(asked);
    JobQueue jobs(workers, false);
    Gate gate(jobs);
    auto futures = submit(jobs, 2, [&](Worker& worker) { launch(worker, *asked); });
    auto losing = submit(jobs, 1, [&](Worker& worker) { worker.device().lose("a test says so"); });
    gate.open();
    for (auto& future : futures) {
        expect_error(future, "is lost");
    }
    expect_error(losing[0], "is lost");  // which of them are not launched is not told apart
    EXPECT_EQ(asked->dropped, 2);
    EXPECT_TRUE(asked->launched.empty());
}

TEST(BriefJobs, AloneHaveTheirOwn)
{
    const auto asked = std::make_shared<Asked>();
    auto workers = polled_worker(asked);
    JobQueue jobs(workers, false);
    for (int i = 1; i <= 5; ++i) {
        jobs.submit([](Worker&, Rendezvous&) {}, {}, brief()).get();
        EXPECT_EQ(asked->records, i);
    }
}

TEST(BriefJobs, AnErrorOfTheirEventIsToldToAll)
{
    const auto asked = std::make_shared<Asked>();
    auto workers = polled_worker(asked);
    JobQueue jobs(workers, false);
    Gate gate(jobs);
    asked->failing_record = 2;
    auto futures = submit(jobs, most_together + 1, [](Worker&) {});
    gate.open();
    for (int i = 0; i < most_together; ++i) {
        expect_error(futures[static_cast<std::size_t>(i)], "nothing can be recorded");
    }
    EXPECT_NO_THROW(futures.back().get());
}

TEST(BriefJobs, AnErrorOfOneIsItsOwn)
{
    auto workers = polled_worker(std::make_shared<Asked>());
    JobQueue jobs(workers, false);
    Gate gate(jobs);
    auto before = submit(jobs, 2, [](Worker&) {});
    auto failing = submit(jobs, 1, [](Worker&) { throw Error(ErrorCode::device, "as asked"); });
    auto behind = submit(jobs, 2, [](Worker&) {});
    gate.open();
    EXPECT_NO_THROW(before[0].get());
    EXPECT_NO_THROW(before[1].get());
    expect_error(failing[0], "as asked");
    EXPECT_NO_THROW(behind[0].get());
    EXPECT_NO_THROW(behind[1].get());
}

TEST(BriefJobs, EndBeforeAJobWithTheCallersArraysBegins)
{
    auto workers = polled_worker(std::make_shared<Asked>());
    JobQueue jobs(workers, false);
    Gate gate(jobs);
    std::atomic<int> ended{0};
    std::vector<std::future<void>> futures;
    for (int i = 0; i < 3; ++i) {
        futures.push_back(jobs.submit([](Worker&, Rendezvous&) {}, [&] { ++ended; }, brief()));
    }
    int seen = 0;
    auto behind = jobs.submit([&](Worker&, Rendezvous&) { seen = ended; }, {}, true);
    gate.open();
    behind.get();
    EXPECT_EQ(seen, 3);
}

TEST(BriefJobs, EndWithATaskThatIsNoJob)
{
    auto workers = polled_worker(std::make_shared<Asked>());
    JobQueue jobs(workers, false);
    Gate gate(jobs);
    auto futures = submit(jobs, 3, [](Worker&) {});
    workers.front()->post([](Worker&) {});
    gate.open();
    for (auto& future : futures) {
        EXPECT_NO_THROW(future.get());
    }
}

TEST(BriefJobs, ThatWereNotKnownToHaveEndedFailWhenTheDeviceIsLost)
{
    auto workers = polled_worker(std::make_shared<Asked>());
    JobQueue jobs(workers, false);
    Gate gate(jobs);
    auto futures = submit(jobs, 3, [](Worker&) {});
    auto losing = jobs.submit([](Worker& worker, Rendezvous&) { worker.device().lose("a test says so"); });
    auto behind = submit(jobs, 2, [](Worker&) {});
    gate.open();
    EXPECT_NO_THROW(losing.get());
    for (auto* group : {&futures, &behind}) {
        for (auto& future : *group) {
            expect_error(future, "is lost");
        }
    }
}

}  // namespace
}  // namespace rmsp::engine::test
