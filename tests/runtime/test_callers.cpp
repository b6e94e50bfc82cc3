// Jobs that the thread that asks for them runs itself, in the worker's place.
#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/rmsp.hpp>
#include <runtime/engine/host/host_device.hpp>
#include <runtime/engine/job_queue.hpp>

#include "late_device.hpp"
#include "workers.hpp"

namespace rmsp::engine::test {
namespace {

using namespace std::chrono_literals;

constexpr double brief = 1e-6;

/// Of a job that queues `work`, one piece, and takes the device `seconds`; 0: long.
JobTerms queues_only(double seconds = brief)
{
    JobTerms terms;
    terms.only_queues = true;
    terms.brief_seconds = seconds;
    terms.may_end_early = true;
    return terms;
}

bool is_ready(std::future<void>& future, std::chrono::milliseconds within = 60s)
{
    return future.wait_for(within) == std::future_status::ready;
}

std::string what_of(std::future<void>& future)
{
    if (!is_ready(future)) {
        return "hangs";
    }
    try {
        future.get();
    } catch (const std::exception& e) {
        return e.what();
    }
    return "";
}

/// A job that keeps the worker at it until it is opened.
class Held {
public:
    explicit Held(JobQueue& jobs)
        : done_(jobs.submit([this](Worker&, Rendezvous&) {
              begun_.set_value();
              opened_.get_future().wait();
          }))
    {
        begun_.get_future().wait();
    }
    void open()
    {
        opened_.set_value();
        done_.get();
    }

private:
    std::promise<void> begun_;
    std::promise<void> opened_;
    std::future<void> done_;
};

/// Whether the calling thread runs the body of such a job. Now and then the worker has the place, as it tells of the
/// end of the job before.
bool runs_here(JobQueue& jobs, const JobTerms& terms)
{
    const auto own = std::this_thread::get_id();
    std::atomic<int> here{0};
    for (int tries = 0; tries < 200 && here == 0; ++tries) {
        jobs.submit([&](Worker&, Rendezvous&) { here += std::this_thread::get_id() == own ? 1 : 0; }, {}, terms).get();
    }
    return here > 0;
}

TEST(Callers, RunWhatOnlyQueuesOnTheOnlyDevice)
{
    LateWork work;
    work.finish();
    {
        auto workers = late_workers(work);
        JobQueue jobs(workers, false);
        EXPECT_TRUE(runs_here(jobs, queues_only()));
        EXPECT_FALSE(runs_here(jobs, JobTerms{}));
        EXPECT_TRUE(runs_here(jobs, queues_only(0)));
        const JobScope scope(JobOptions{});
        EXPECT_TRUE(runs_here(jobs, queues_only()));
        EXPECT_EQ(work.visits, 3);
        EXPECT_EQ(work.inside, 0);
    }
    auto workers = late_workers(work, 2);
    JobQueue jobs(workers, false);
    EXPECT_FALSE(runs_here(jobs, queues_only()));
}

TEST(Callers, RunNothingOnHostDevicesUnlessATestWantsThat)
{
    {
        auto workers = host_workers(1);
        JobQueue jobs(workers, true);
        EXPECT_FALSE(runs_here(jobs, queues_only()));
    }
    open_serial_devices_to_callers(true);
    auto workers = host_workers(1);
    open_serial_devices_to_callers(false);
    JobQueue jobs(workers, true);
    EXPECT_TRUE(runs_here(jobs, queues_only()));
}

TEST(Callers, OvertakeNothing)
{
    LateWork work;
    work.finish();
    auto workers = late_workers(work);
    JobQueue jobs(workers, false);
    // Not atomic: ThreadSanitizer sees whether two threads are at it.
    std::uint64_t last = 0;
    std::int64_t disorder = 0;
    const auto note = [&](Worker&, Rendezvous& meeting) {
        disorder += meeting.job() == last + 1 ? 0 : 1;
        last = meeting.job();
        ++work.queued;
    };
    {
        Held held(jobs);
        last = 1;
        std::vector<std::future<void>> behind;
        for (int i = 0; i < 3; ++i) {
            behind.push_back(jobs.submit(note, {}, queues_only()));
        }
        EXPECT_EQ(last, 1u);
        EXPECT_EQ(work.visits, 0);
        held.open();
        for (auto& one : behind) {
            EXPECT_EQ(what_of(one), "");
        }
    }
    EXPECT_EQ(last, 4u);
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&, t] {
                std::future<void> done;
                for (int i = 0; i < 500; ++i) {
                    done = jobs.submit(note, {}, (i + t) % 50 == 0 ? JobTerms{} : queues_only(i % 3 == 0 ? 0 : brief));
                    if (i % 20 == t) {
                        EXPECT_EQ(what_of(done), "");
                    }
                }
                EXPECT_EQ(what_of(done), "");
            });
        }
    }
    EXPECT_EQ(disorder, 0);
    EXPECT_EQ(last, 2004u);
    EXPECT_EQ(jobs.drain(), 0);
    EXPECT_EQ(jobs.metrics().finished, 2004u);
    EXPECT_EQ(work.inside, 0);
}

TEST(Callers, AreToldOfTheEndAsSoonAsItIsThere)
{
    LateWork work;
    auto workers = late_workers(work);
    JobQueue jobs(workers, false);
    const auto add = [&](double seconds) {
        return jobs.submit([&](Worker&, Rendezvous&) { ++work.queued; }, {}, queues_only(seconds));
    };
    auto first = add(brief);
    auto second = add(brief);
    auto third = add(0);
    auto fourth = add(0);
    EXPECT_EQ(work.queued, 4);  // nobody waited for the device
    EXPECT_FALSE(is_ready(first, 5ms));
    work.done = 1;
    // What is brief may wait for its like, and for nothing else.
    EXPECT_FALSE(is_ready(second, 5ms));
    work.done = 2;
    EXPECT_TRUE(is_ready(first));
    EXPECT_TRUE(is_ready(second));
    EXPECT_FALSE(is_ready(third, 5ms));
    work.done = 3;
    EXPECT_TRUE(is_ready(third));
    EXPECT_FALSE(is_ready(fourth, 5ms));
    work.done = 4;
    EXPECT_TRUE(is_ready(fourth));
}

TEST(Callers, RecordAnEventForManyBriefJobsAndForEachOfTheOthers)
{
    constexpr int count = 96;
    for (const double seconds : {brief, 0.0}) {
        LateWork work;
        auto workers = late_workers(work);
        JobQueue jobs(workers, false);
        std::vector<std::future<void>> done;
        for (int i = 0; i < count; ++i) {
            done.push_back(jobs.submit([&](Worker&, Rendezvous&) { ++work.queued; }, {}, queues_only(seconds)));
        }
        work.finish();
        for (auto& one : done) {
            EXPECT_EQ(what_of(one), "");
        }
        // The worker's thread may have been as quick as to add some.
        EXPECT_GE(work.records, seconds > 0 ? count / 16 : count);
        EXPECT_LE(work.records, count);
    }
}

TEST(Callers, LeaveItToTheWorkerWhereTheDeviceIsFarBehind)
{
    LateWork work;
    auto workers = late_workers(work);
    JobQueue jobs(workers, false);
    const auto own = std::this_thread::get_id();
    std::atomic<int> elsewhere{0};
    std::vector<std::future<void>> done;
    for (int i = 0; i < 300; ++i) {
        done.push_back(jobs.submit(
            [&](Worker&, Rendezvous&) {
                ++work.queued;
                elsewhere += std::this_thread::get_id() == own ? 0 : 1;
            },
            {}, queues_only()));
    }
    work.finish();
    for (auto& one : done) {
        EXPECT_EQ(what_of(one), "");
    }
    EXPECT_GE(elsewhere, 300 - 129);
    EXPECT_TRUE(runs_here(jobs, queues_only()));
}

TEST(Callers, AreToldOfErrorsAndTheQueueGoesOn)
{
    LateWork work;
    work.finish();
    auto workers = late_workers(work);
    JobQueue jobs(workers, false);
    const auto queue = [&] { return jobs.submit([](Worker&, Rendezvous&) {}, {}, queues_only()); };
    auto before = queue();
    auto thrown =
        jobs.submit([](Worker&, Rendezvous&) { throw std::runtime_error("device broke"); }, {}, queues_only());
    EXPECT_EQ(what_of(thrown), "device broke");
    EXPECT_EQ(what_of(before), "");
    work.enter_fails = true;
    std::uint64_t handed_over = 0;  // the worker need not enter
    std::string refused;
    while (refused.empty() && handed_over < 200) {
        auto one = queue();
        refused = what_of(one);
        handed_over += refused.empty() ? 1 : 0;
    }
    EXPECT_EQ(refused, "no way in");
    work.enter_fails = false;
    work.record_fails = true;
    auto untold = queue();
    EXPECT_EQ(what_of(untold), "no event");
    work.record_fails = false;
    auto finish = jobs.submit([](Worker&, Rendezvous&) {}, [] { throw std::runtime_error("finish"); }, queues_only());
    EXPECT_EQ(what_of(finish), "finish");
    auto after = queue();
    EXPECT_EQ(what_of(after), "");
    const Metrics metrics = jobs.metrics();
    EXPECT_EQ(metrics.failed, 4u);
    EXPECT_EQ(metrics.finished, 2 + handed_over);
    EXPECT_EQ(metrics.running, 0);
    EXPECT_EQ(work.inside, 0);
}

TEST(Callers, AskAgainWhileAJobOfTheirsRunsOrEnds)
{
    LateWork work;
    work.finish();
    auto workers = late_workers(work);
    JobQueue jobs(workers, false);
    std::vector<int> order;
    std::promise<std::future<void>> of_body;
    std::promise<std::future<void>> of_finish;
    auto outer = jobs.submit(
        [&](Worker&, Rendezvous&) {
            of_body.set_value(jobs.submit([&](Worker&, Rendezvous&) { order.push_back(2); }, {}, queues_only()));
            order.push_back(1);
        },
        [&] { of_finish.set_value(jobs.submit([&](Worker&, Rendezvous&) { order.push_back(3); }, {}, queues_only())); },
        queues_only());
    EXPECT_EQ(what_of(outer), "");
    auto second = of_body.get_future().get();
    auto third = of_finish.get_future().get();
    EXPECT_EQ(what_of(second), "");
    EXPECT_EQ(what_of(third), "");
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(Callers, KeepToOptions)
{
    LateWork work;
    auto workers = late_workers(work);
    JobQueue jobs(workers, false, {}, false, 8);
    std::atomic<int> ran{0};
    std::vector<std::future<void>> given;
    const auto add = [&](const JobOptions& options) {
        const JobScope scope(options);
        return jobs.submit(
            [&](Worker&, Rendezvous&) {
                ++work.queued;
                ++ran;
            },
            {}, queues_only());
    };
    // The device is at it for so long that others wait for their turn.
    for (int i = 0; i < 2; ++i) {
        given.push_back(add({}));
    }
    std::this_thread::sleep_for(10ms);
    std::stop_source source;
    JobOptions stopped;
    stopped.stop = source.get_token();
    auto cancelled = add(stopped);
    JobOptions late;
    late.deadline = Clock::now() + 300ms;
    auto expired = add(late);
    auto waits = add({});
    EXPECT_EQ(ran, 2);
    EXPECT_EQ(jobs.metrics().waiting, 3);
    source.request_stop();
    EXPECT_NE(what_of(cancelled).find("cancelled"), std::string::npos);
    EXPECT_NE(what_of(expired).find("deadline"), std::string::npos);
    EXPECT_THROW(add(stopped), Error);
    work.finish();
    EXPECT_EQ(what_of(waits), "");
    for (auto& one : given) {
        EXPECT_EQ(what_of(one), "");
    }
    EXPECT_EQ(ran, 3);
    const Metrics metrics = jobs.metrics();
    EXPECT_EQ(metrics.finished, 3u);
    EXPECT_EQ(metrics.cancelled, 1u);
    EXPECT_EQ(metrics.expired, 1u);
    EXPECT_EQ(metrics.running, 0);
}

TEST(Callers, MayStopWhileOthersAsk)
{
    for (int round = 0; round < 50; ++round) {
        LateWork work;
        auto workers = late_workers(work);
        {
            JobQueue jobs(workers, false);
            std::vector<std::jthread> threads;
            for (int t = 0; t < 3; ++t) {
                threads.emplace_back([&] {
                    try {
                        while (true) {
                            static_cast<void>(
                                jobs.submit([&](Worker&, Rendezvous&) { ++work.queued; }, {}, queues_only()));
                            ++work.done;
                        }
                    } catch (const Error&) {
                        // The queue was closed.
                    }
                });
            }
            std::this_thread::sleep_for(1ms);
            work.finish();
            jobs.drain();
        }
        for (auto& worker : workers) {
            worker->stop();
        }
        EXPECT_EQ(work.inside, 0);
    }
}

TEST(Callers, ProductsWithVectorsOnTheDevice)
{
    open_serial_devices_to_callers(true);
    RuntimeOptions options;
    options.devices = "host:1x1";
    options.bind = BindPolicy::none;
    Runtime runtime(options);
    open_serial_devices_to_callers(false);
    const auto a = generate<double>("stencil7 6 6 6");
    auto matrix = runtime.distribute(a.view());
    const auto multiply_again_and_again = [&](unsigned seed) {
        auto x = matrix.make_x(Layout::rows);
        auto y = matrix.make_y();
        std::vector<double> from(static_cast<std::size_t>(a.cols));
        std::vector<double> to(static_cast<std::size_t>(a.rows));
        for (int round = 0; round < 20; ++round) {
            for (std::size_t i = 0; i < from.size(); ++i) {
                from[i] = static_cast<double>((i * 7 + seed + static_cast<unsigned>(round)) % 9) - 4;
            }
            x.upload(from.data());
            for (int i = 0; i < 10; ++i) {
                static_cast<void>(matrix.apply_async(1.0, x, 0.0, y));
            }
            y.download(to.data());
            EXPECT_TRUE(verify_spmv<double>(a.view(), 1.0, from.data(), 0.0, nullptr, to.data()).passed);
        }
    };
    {
        std::vector<std::jthread> threads;
        for (unsigned t = 0; t < 4; ++t) {
            threads.emplace_back([&, t] { multiply_again_and_again(t); });
        }
    }
    const auto metrics = runtime.metrics();
    EXPECT_EQ(metrics.failed, 0u);
    EXPECT_EQ(metrics.running + metrics.waiting, 0);
}

}  // namespace
}  // namespace rmsp::engine::test
