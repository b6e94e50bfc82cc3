#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <kernels/context.hpp>
#include <rmsp/rmsp.hpp>
#include <runtime/matrix/matrix_state.hpp>
#include <runtime/node/node.hpp>
#include <runtime/transport/link.hpp>
#include <runtime/transport/spares.hpp>
#include <runtime/transport/table.hpp>

/// Memory that channels leave to the next ones, on host devices that are connected by copies all the same.
namespace rmsp::transport {
namespace {

using engine::Rendezvous;
using engine::Worker;

constexpr std::int64_t bytes_of_channel = 3232;
constexpr std::int64_t memory_limit = 100000;

/// Host copies, by channels that take memory of the devices as those of peers do.
class Keeping final : public Transport {
public:
    explicit Keeping(int devices) : spares_(static_cast<std::size_t>(devices)) {}
    std::string name() const override { return "host"; }  // plans know those of the table
    std::unique_ptr<Channel> make_channel(int devices, std::int64_t bytes, std::vector<std::int64_t> received) override
    {
        return std::make_unique<Ends>(copies_->make_channel(devices, bytes, std::move(received)), devices, spares_);
    }
    void open(Channel& channel, Worker& worker) override
    {
        Ends& ends = dynamic_cast<Ends&>(channel);
        copies_->open(*ends.copies, worker);
        ends.memory[static_cast<std::size_t>(worker.rank())] = spares_.take(worker, bytes_of_channel);
    }
    void open_pool(Worker& worker) override { spares_.keep_from_now_on(worker.rank()); }
    void give_back_spares(int rank) noexcept override { spares_.give_back(rank); }

private:
    struct Ends final : Channel {
        Ends(std::unique_ptr<Channel> copies_, int devices, Spares& spares_)
            : copies(std::move(copies_)), memory(static_cast<std::size_t>(devices)), spares(spares_)
        {
        }
        void gather(Worker& worker, engine::Stream& stream, Rendezvous& meeting, const Gather& gather,
                    const std::function<void()>& write) override
        {
            copies->gather(worker, stream, meeting, gather, write);
        }
        void settle(Worker& worker, engine::Stream& stream, Rendezvous& meeting) override
        {
            copies->settle(worker, stream, meeting);
        }
        void reduce_scatter(Worker& worker, Rendezvous& meeting, const Reduce& reduce) override
        {
            copies->reduce_scatter(worker, meeting, reduce);
        }
        void close(int rank) noexcept override
        {
            copies->close(rank);
            spares.leave(rank, std::move(memory[static_cast<std::size_t>(rank)]));
        }

        std::unique_ptr<Channel> copies;
        std::vector<kernels::DeviceArray<std::byte>> memory;
        Spares& spares;
    };

    std::unique_ptr<Transport> copies_ = make_transport("host", {});
    Spares spares_;
};

/// A runtime of two host devices whose channels' memory is kept.
class SparesOfARuntime : public testing::Test {
protected:
    SparesOfARuntime()
    {
        RuntimeOptions options;
        options.devices = "host:2x1";
        options.bind = BindPolicy::none;
        options.memory_limit = memory_limit;
        runtime = Runtime(options);
        state = detail::RuntimeAccess::state(runtime);
        state->connection = {
            std::make_unique<Link>(std::make_unique<Keeping>(2), std::vector<std::string>{"host"}, state->workers),
            "host", "a test"};
        state->submit([&](Worker& worker, Rendezvous&) { state->connection.transport->open_pool(worker); }).get();
    }
    void place_and_free() { (void)runtime.distribute(a.view()); }
    /// Once all that was let go has been freed.
    std::vector<std::int64_t> resident()
    {
        state->submit([](Worker&, Rendezvous&) {}).get();
        std::vector<std::int64_t> bytes;
        for (const DeviceMetrics& device : runtime.metrics().devices) {
            bytes.push_back(device.resident_bytes);
        }
        return bytes;
    }

    using Bytes = std::vector<std::int64_t>;
    const Bytes all{memory_limit, memory_limit};
    const CsrMatrix<double> a = generate<double>("stencil7 4 4 4");
    Runtime runtime;
    std::shared_ptr<detail::RuntimeState> state;
};

TEST_F(SparesOfARuntime, ServeTheNextMatrixAndGiveWayToWhatHasNoRoom)
{
    for (int i = 0; i < 3; ++i) {
        place_and_free();
        EXPECT_EQ(resident(), Bytes(2, bytes_of_channel));
    }
    const auto promised = state->admit("all that there is", all);
    EXPECT_EQ(resident(), Bytes(2, 0));
}

TEST_F(SparesOfARuntime, DoNotKeepWhoWaitsForMemoryWaiting)
{
    place_and_free();
    auto matrix = runtime.distribute(a.view());
    auto waits = std::async(std::launch::async, [&] {
        JobOptions patient;
        patient.when_no_memory = WhenFull::wait;
        patient.deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        const JobScope scope(patient);
        (void)state->admit("all that there is", all);
    });
    while (runtime.metrics().memory_waiting == 0) {
        std::this_thread::yield();
    }
    matrix = {};
    EXPECT_NO_THROW(waits.get());
    place_and_free();
    EXPECT_EQ(resident(), Bytes(2, 0));
}

TEST_F(SparesOfARuntime, GoWhenTheBytesAreCounted)
{
    place_and_free();
    state->catch_up();
    EXPECT_EQ(resident(), Bytes(2, 0));
}

}  // namespace
}  // namespace rmsp::transport
