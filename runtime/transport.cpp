#include "runtime/transport.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "runtime/cuda/cuda_backend.hpp"
#include "runtime/hand_over.hpp"
#include "runtime/job.hpp"

namespace rmsp::runtime {
namespace {

class HostChannel final : public Channel {
public:
    HostChannel(int devices, std::int64_t bytes) : bounce_(devices), bytes_(bytes), hand_over_(devices) {}

    void open(Worker& worker)
    {
        // Each device writes its own slice into memory near itself, so that no NUMA node takes all of the traffic.
        bounce_[worker.rank()] = PinnedBuffer(worker.device(), static_cast<std::size_t>(bytes_));
        hand_over_.open(worker.rank(), worker.device());
    }
    void close(int rank) noexcept override
    {
        bounce_[rank] = PinnedBuffer();
        hand_over_.close(rank);
    }

    void gather(Worker& worker, Stream& stream, Rendezvous& meeting, const Gather& gather,
                const std::function<void()>& write) override
    {
        const int rank = worker.rank();
        write();
        // The smallest range of the slice that serves everyone, so that it crosses this device's link once.
        const std::int64_t slice = gather.slices[static_cast<std::size_t>(rank)];
        Range asked;
        for (int other = 0; other < gather.devices(); ++other) {
            const Range part = gather.part(rank, other);
            if (other != rank && !part.empty()) {
                asked = asked.empty() ? part : Range{std::min(asked.first, part.first), std::max(asked.end, part.end)};
            }
        }
        stream.copy(bounced(rank, gather, slice, asked.first), gather.place(rank, asked.first), gather.bytes(asked));
        hand_over_.publish(rank, stream, meeting);
        for (int step = 1; step < gather.devices(); ++step) {
            const int other = (rank + step) % gather.devices();
            const Range part = gather.part(other, rank);
            stream.copy(gather.place(rank, part.first),
                        bounced(other, gather, gather.slices[static_cast<std::size_t>(other)], part.first),
                        gather.bytes(part));
        }
        hand_over_.end(rank, stream);
    }
    void settle(Worker& worker, Stream& stream, Rendezvous& meeting) override
    {
        hand_over_.settle(worker.rank(), stream, meeting);
    }

private:
    std::byte* bounced(int rank, const Gather& gather, std::int64_t slice, std::int64_t entry) const
    {
        return static_cast<std::byte*>(bounce_[static_cast<std::size_t>(rank)].data()) +
               static_cast<std::size_t>(std::max<std::int64_t>(0, entry - slice)) * gather.entry_bytes;
    }

    std::vector<PinnedBuffer> bounce_;
    std::int64_t bytes_;
    HandOver hand_over_;
};

class HostTransport final : public Transport {
public:
    std::string name() const override { return "host"; }
    std::unique_ptr<Channel> make_channel(int devices, std::int64_t bytes) override
    {
        return std::make_unique<HostChannel>(devices, bytes);
    }
    void open(Channel& channel, Worker& worker) override { dynamic_cast<HostChannel&>(channel).open(worker); }
};

constexpr std::array<const char*, 3> names{"peer", "nccl", "host"};

}  // namespace

std::unique_ptr<Transport> make_host_transport() { return std::make_unique<HostTransport>(); }

std::span<const char* const> transport_names() { return names; }

std::unique_ptr<Transport> make_transport(const std::string& name, std::span<const std::unique_ptr<Worker>> workers,
                                          std::chrono::steady_clock::duration limit)
{
    if (name == "host") {
        return make_host_transport();
    }
    return name == "peer" ? make_peer_transport(workers) : make_nccl_transport(workers, limit);
}

bool wait_for_stream(Worker& worker, std::chrono::steady_clock::duration limit)
{
    const auto deadline = std::chrono::steady_clock::now() + limit;
    const auto event = worker.device().make_event(false);
    worker.stream().record(*event);
    while (!event->ready()) {
        if (std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        std::this_thread::yield();
    }
    return true;
}

void test_with_data(Transport& transport, std::span<const std::unique_ptr<Worker>> workers,
                    std::chrono::steady_clock::duration limit)
{
    const int devices = static_cast<int>(workers.size());
    constexpr std::int64_t slice_words = 1 << 15;
    std::vector<std::int64_t> offsets(devices + 1);
    for (int i = 0; i <= devices; ++i) {
        offsets[i] = i * slice_words;
    }
    const auto pattern = [](std::int64_t word) { return static_cast<std::uint64_t>(word + 1) * 0x9E3779B97F4A7C15u; };

    std::vector<void*> buffers(devices);
    const std::int64_t total_bytes = slice_words * devices * 8;
    const auto channel = transport.make_channel(devices, total_bytes);
    JobQueue jobs(workers, false, [&](std::uint64_t job) { transport.give_up(job); });
    const auto clean_up = [&] {
        jobs.submit([&](Worker& worker, Rendezvous&) {
                worker.stream().synchronize();
                channel->close(worker.rank());
                if (buffers[worker.rank()] != nullptr) {
                    worker.device().deallocate(buffers[worker.rank()], static_cast<std::size_t>(total_bytes));
                }
            })
            .get();
    };
    try {
        jobs.submit([&](Worker& worker, Rendezvous&) {
                const int rank = worker.rank();
                transport.open(*channel, worker);
                buffers[rank] = worker.device().allocate(static_cast<std::size_t>(total_bytes));
                std::vector<std::uint64_t> zeros(slice_words * devices, 0);
                worker.device().upload(worker.stream(), buffers[rank], zeros.data(), zeros.size() * 8);
            })
            .get();
        jobs.submit([&](Worker& worker, Rendezvous& meeting) {
                const int rank = worker.rank();
                std::vector<std::uint64_t> own(slice_words);
                for (std::int64_t i = 0; i < slice_words; ++i) {
                    own[i] = pattern(rank * slice_words + i);
                }
                const std::vector<Range> needed(static_cast<std::size_t>(devices), Range{0, offsets.back()});
                channel->gather(worker, worker.stream(), meeting, Gather{buffers, offsets, needed, 8}, [&] {
                    worker.device().upload(worker.stream(), static_cast<std::uint64_t*>(buffers[rank]) + offsets[rank],
                                           own.data(), own.size() * 8);
                });
                channel->settle(worker, worker.stream(), meeting);
                if (!wait_for_stream(worker, limit)) {
                    transport.abort(rank);
                    throw Error(ErrorCode::device,
                                fmt::format("data for device {} did not arrive in {} s", rank,
                                            std::chrono::duration_cast<std::chrono::seconds>(limit).count()));
                }
                std::vector<std::uint64_t> all(slice_words * devices);
                worker.device().download(worker.stream(), all.data(), buffers[rank], all.size() * 8);
                worker.stream().synchronize();
                for (std::int64_t i = 0; i < slice_words * devices; ++i) {
                    if (all[i] != pattern(i)) {
                        throw Error(ErrorCode::device,
                                    fmt::format("data from device {} arrived wrong on device {} (word {} of {})",
                                                i / slice_words, rank, i % slice_words, slice_words));
                    }
                }
            })
            .get();
    } catch (...) {
        try {
            clean_up();
        } catch (const std::exception& e) {
            spdlog::debug("cleaning up after a failed transport test: {}", e.what());
        }
        throw;
    }
    clean_up();
}

Connection connect(std::span<const std::unique_ptr<Worker>> workers, const std::vector<std::string>& order,
                   std::span<const TestedTransport> tested)
{
    std::vector<std::string> candidates = order;
    if (candidates.empty()) {
        candidates.assign(names.begin(), names.end());
    }
    for (const auto& name : candidates) {
        if (std::find(names.begin(), names.end(), name) == names.end()) {
            throw Error(ErrorCode::usage,
                        fmt::format("unknown transport \"{}\"; known: {}", name, fmt::join(names, ", ")));
        }
    }
    if (workers.size() < 2) {
        return {nullptr, "none", "one device"};
    }
    const bool shared =
        std::all_of(workers.begin(), workers.end(), [](const auto& w) { return w->device().shares_host_memory(); });
    if (shared) {
        return {nullptr, "shared", "host devices read each other's memory"};
    }
    std::string failures;
    for (const auto& name : candidates) {
        try {
            const auto known =
                std::find_if(tested.begin(), tested.end(), [&](const auto& test) { return test.name == name; });
            if (known != tested.end() && !known->passed) {
                throw Error(ErrorCode::device, known->detail);
            }
            auto transport = make_transport(name, workers, communication_limit);
            if (known != tested.end()) {
                return {std::move(transport), name, failures + known->detail};
            }
            test_with_data(*transport, workers, communication_limit);
            return {std::move(transport), name, failures + "moved test data between all devices"};
        } catch (const Error& e) {
            failures += fmt::format("{}: {}; ", name, e.what());
            spdlog::info("transport {} not used: {}", name, e.what());
        }
    }
    throw Error(ErrorCode::device, "no transport connects the devices: " + failures);
}

}  // namespace rmsp::runtime
