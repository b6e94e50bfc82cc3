#include <atomic>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <runtime/engine/job_queue.hpp>
#include <runtime/engine/refusals.hpp>
#include <runtime/transport/given_up.hpp>
#include <runtime/transport/link.hpp>
#include <runtime/transport/table.hpp>

#include "link_fixtures.hpp"
#include "workers.hpp"

/// Transports that fail in use, on host devices that are connected by copies all the same.
namespace rmsp::transport {
namespace {

using engine::JobQueue;
using engine::Refusals;
using engine::Rendezvous;
using engine::Request;
using engine::Worker;

/// Host copies under a name that no table has.
class Flaky final : public Transport {
public:
    std::string name() const override { return "flaky"; }
    std::unique_ptr<Channel> make_channel(int devices, std::int64_t bytes, std::vector<std::int64_t> received) override
    {
        return copies_->make_channel(devices, bytes, std::move(received));
    }
    void open(Channel& channel, Worker& worker) override { copies_->open(channel, worker); }

private:
    std::unique_ptr<Transport> copies_ = make_transport("host", {});
};

/// Three host devices, their queue, and a channel of a link between them.
class Links : public testing::Test {
protected:
    ~Links() override
    {
        jobs.submit([&](Worker& worker, Rendezvous&) { channel->close(worker.rank()); }).get();
    }
    void open(std::vector<std::string> next)
    {
        link = std::make_unique<Link>(std::make_unique<Flaky>(), std::move(next), workers);
        channel = link->make_channel(3, 12 * 8, {24, 24, 24});
        jobs.submit([&](Worker& worker, Rendezvous&) { link->open(*channel, worker); }).get();
    }
    /// Each device writes its slice, and gets the others'.
    std::future<void> gather(const std::function<void(int)>& before = {})
    {
        for (auto& one : data) {
            one.assign(12, -1);
        }
        return jobs.submit([&, before](Worker& worker, Rendezvous& meeting) {
            const auto rank = static_cast<std::size_t>(worker.rank());
            std::vector<void*> buffers{data[0].data(), data[1].data(), data[2].data()};
            const std::vector<Range> needed(3, Range{0, 12});
            channel->gather(worker, worker.stream(), meeting, {buffers, slices, needed, sizeof(double)}, [&] {
                if (before) {
                    before(worker.rank());
                }
                for (auto i = slices[rank]; i < slices[rank + 1]; ++i) {
                    data[rank][static_cast<std::size_t>(i)] = static_cast<double>(i);
                }
            });
            meeting.arrive_and_wait();
        });
    }
    void expect_gathered() const
    {
        for (const auto& one : data) {
            for (std::size_t i = 0; i < one.size(); ++i) {
                EXPECT_EQ(one[i], static_cast<double>(i));
            }
        }
    }

    const std::vector<std::int64_t> slices{0, 5, 5, 12};
    std::vector<std::unique_ptr<Worker>> workers = engine::test::host_workers(3);
    JobQueue jobs{workers, true};
    std::unique_ptr<Link> link;
    std::unique_ptr<Channel> channel;
    std::vector<std::vector<double>> data{3};
};

TEST_F(Links, ATransportThatFailsIsReplacedByTheNext)
{
    open({"host"});
    gather().get();
    expect_gathered();
    EXPECT_FALSE(link->wants_replacement());
    std::string error;
    {
        const Refusals second(Request::transfer, 2, false);
        error = error_of([&] { gather().get(); });
    }
    const std::string expected = "transport flaky failed between host:0 ";
    EXPECT_EQ(error.substr(0, expected.size()), expected);
    EXPECT_NE(error.find("a test refuses the transfer"), std::string::npos) << error;
    EXPECT_TRUE(link->wants_replacement());
    // Jobs that were queued before it is replaced end alike.
    EXPECT_EQ(error_of([&] { gather().get(); }), error);

    link->replace(workers, jobs);
    EXPECT_FALSE(link->wants_replacement());
    EXPECT_EQ(link->name(), "host");
    EXPECT_TRUE(link->is_called("flaky"));
    EXPECT_EQ(link->replacements(), 1u);
    EXPECT_EQ(link->history(), error + "; host took its place, it moved test data between all devices");
    for (int i = 0; i < 3; ++i) {
        gather().get();
        expect_gathered();
    }
    // Sums, and channels that are made now.
    channel->close(0);
    jobs.submit([&](Worker& worker, Rendezvous&) { channel->close(worker.rank()); }).get();
    channel = link->make_channel(3, 12 * 8);
    jobs.submit([&](Worker& worker, Rendezvous&) { link->open(*channel, worker); }).get();
    gather().get();
    expect_gathered();
}

TEST_F(Links, SumsGoOnWithTheNextTransport)
{
    open({"host"});
    const std::vector<Range> touched(3, Range{0, 12});
    std::vector<std::vector<double>> y(3, std::vector<double>(12, 0.0));
    const auto add = [&] {
        for (std::size_t rank = 0; rank < 3; ++rank) {
            data[rank].assign(12, static_cast<double>(rank + 1));
        }
        jobs.submit([&](Worker& worker, Rendezvous& meeting) {
                std::vector<void*> partials{data[0].data(), data[1].data(), data[2].data()};
                channel->reduce_scatter(worker, meeting,
                                        {partials, touched, slices, sizeof(double),
                                         y[static_cast<std::size_t>(worker.rank())].data(), 0.0, true});
                channel->settle(worker, worker.stream(), meeting);
                meeting.arrive_and_wait();
            })
            .get();
    };
    {
        const Refusals third(Request::transfer, 3, false);
        EXPECT_NE(error_of(add).find("transport flaky failed"), std::string::npos);
    }
    link->replace(workers, jobs);
    add();
    for (std::size_t rank = 0; rank < 3; ++rank) {
        for (auto i = slices[rank]; i < slices[rank + 1]; ++i) {
            EXPECT_EQ(y[rank][static_cast<std::size_t>(i)], 6.0);
        }
    }
}

TEST_F(Links, WhatFailsBesideTheTransportIsNoFaultOfIt)
{
    open({"host"});
    const auto fails = [](int rank) {
        if (rank == 1) {
            throw Error(ErrorCode::device, "injected");
        }
    };
    EXPECT_EQ(error_of([&] { gather(fails).get(); }), "injected");
    EXPECT_FALSE(link->wants_replacement());
    link->replace(workers, jobs);
    EXPECT_EQ(link->name(), "flaky");
    gather().get();
    expect_gathered();
}

TEST_F(Links, WhereNothingTakesItsPlaceJobsFailByName)
{
    open({"no such"});
    {
        const Refusals first(Request::transfer, 1, false);
        (void)error_of([&] { gather().get(); });
    }
    link->replace(workers, jobs);
    EXPECT_FALSE(link->wants_replacement());
    EXPECT_EQ(link->replacements(), 0u);
    EXPECT_NE(error_of([&] { gather().get(); }).find("; nothing takes its place"), std::string::npos);
}

TEST_F(LinkedRuntime, TheJobFailsByNameAndLaterOnesAreRight)
{
    auto x = matrix.make_x(Layout::rows);
    auto y = matrix.make_y();
    x.upload(entries.data());
    EXPECT_TRUE(multiplies(x, y));
    EXPECT_EQ(runtime.metrics().transports_replaced, 0u);
    std::string error;
    {
        const Refusals first(Request::transfer, 1, false);
        error = error_of([&] { matrix.apply(1.0, x, 0.0, y); });
    }
    EXPECT_EQ(error.substr(0, 24), "transport host failed be");
    EXPECT_TRUE(multiplies(x, y));
    const Metrics metrics = runtime.metrics();
    EXPECT_EQ(metrics.transports_replaced, 1u);
    EXPECT_EQ(metrics.transports, std::vector<std::string>{"host"});
    EXPECT_NE(metrics.to_prometheus().find("rmsp_transports_replaced_total 1"), std::string::npos);
    EXPECT_EQ(runtime.transport(),
              "host (a test; " + error + "; host took its place, it moved test data between all devices)");
    EXPECT_EQ(matrix.report().plan.transport, "host");
}

TEST_F(LinkedRuntime, ThreadsGoOn)
{
    std::atomic<int> right{0};
    std::atomic<int> named{0};
    std::atomic<int> wrong{0};
    const Refusals later(Request::transfer, 40, false);
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&] {
                auto x = matrix.make_x(Layout::rows);
                auto y = matrix.make_y();
                x.upload(entries.data());
                for (int i = 0; i < 20; ++i) {
                    try {
                        ++(multiplies(x, y) ? right : wrong);
                    } catch (const Error& e) {
                        ++(std::string(e.what()).find("transport host failed") == 0 ? named : wrong);
                    }
                }
            });
        }
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_GE(named, 1);
    EXPECT_EQ(right + named, 80);
    EXPECT_EQ(runtime.metrics().transports_replaced, 1u);
}

TEST(GivenUp, ConcernsTheJobThatFailedAndNoOther)
{
    const auto workers = engine::test::host_workers(1);
    GivenUp given_up(engine::PinnedBuffer(workers.front()->device(), GivenUp::bytes));
    const auto is_given_up = [&](std::uint64_t job, std::uint64_t wait) {
        return *given_up.word(epoch_of(job, wait)) >= epoch_of(job, wait);
    };
    given_up.note(7);
    given_up.note(5);
    EXPECT_TRUE(is_given_up(7, 1));
    EXPECT_TRUE(is_given_up(7, static_cast<std::uint64_t>(most_waits)));
    EXPECT_TRUE(is_given_up(5, 1));
    for (const std::uint64_t job : {1U, 4U, 6U, 8U}) {
        EXPECT_FALSE(is_given_up(job, 1)) << job;
        EXPECT_FALSE(is_given_up(job, static_cast<std::uint64_t>(most_waits))) << job;
    }
    EXPECT_FALSE(is_given_up(7 + given_up_words, 1));
    EXPECT_GE(given_up.last(), epoch_of(7, static_cast<std::uint64_t>(most_waits)));
    EXPECT_LT(given_up.last(), epoch_of(8, 0));
}

}  // namespace
}  // namespace rmsp::transport
