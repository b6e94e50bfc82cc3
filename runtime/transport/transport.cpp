#include "runtime/transport/transport.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <kernels/steps/ghosts/ghosts.hpp>
#include <kernels/steps/support/support.hpp>

#include "runtime/engine/hand_over.hpp"
#include "runtime/engine/job.hpp"
#include "runtime/transport/cuda/cuda_transports.hpp"

namespace rmsp::transport {
namespace {

class HostChannel final : public Channel {
public:
    HostChannel(int devices, std::int64_t bytes) : bounce_(devices), bytes_(bytes), hand_over_(devices) {}

    void open(engine::Worker& worker)
    {
        // Each device writes its own slice into memory near itself, so that no NUMA node takes all of the traffic.
        bounce_[worker.rank()] = engine::PinnedBuffer(worker.device(), static_cast<std::size_t>(bytes_));
        hand_over_.open(worker.rank(), worker.device());
    }
    void close(int rank) noexcept override
    {
        bounce_[rank] = engine::PinnedBuffer();
        hand_over_.close(rank);
    }

    void gather(engine::Worker& worker, engine::Stream& stream, engine::Rendezvous& meeting, const Gather& gather,
                const std::function<void()>& write) override
    {
        const int rank = worker.rank();
        write();
        gather.pack(worker, stream);
        // What serves everyone crosses this device's link once, as much at a time as the pinned memory takes.
        std::vector<std::span<const std::byte>> sent;
        std::size_t most = 1;
        for (int device = 0; device < gather.devices(); ++device) {
            sent.push_back(gather.sent(device));
            most = std::max(most, sent.back().size());
        }
        const auto window = static_cast<std::size_t>(std::max<std::int64_t>(bytes_, 1));
        for (std::size_t begin = 0; begin < most; begin += window) {
            if (begin > 0) {
                hand_over_.settle(rank, stream, meeting);
            }
            const auto now = [&](int device) {
                const auto& all = sent[static_cast<std::size_t>(device)];
                return begin < all.size() ? all.subspan(begin, std::min(window, all.size() - begin))
                                          : std::span<const std::byte>();
            };
            stream.copy(bounce_[static_cast<std::size_t>(rank)].data(), now(rank).data(), now(rank).size());
            hand_over_.publish(rank, stream, meeting);
            for (int step = 1; step < gather.devices(); ++step) {
                const int other = (rank + step) % gather.devices();
                const Transfer in = gather.transfer(other, rank);
                const auto there = now(other);
                if (in.empty() || there.empty()) {
                    continue;
                }
                const std::byte* const first = std::max(in.from, there.data());
                const std::byte* const end = std::min(in.from + in.bytes, there.data() + there.size());
                if (first < end) {
                    const auto* const bounced =
                        static_cast<std::byte*>(bounce_[static_cast<std::size_t>(other)].data());
                    stream.copy(in.to + (first - in.from), bounced + (first - there.data()),
                                static_cast<std::size_t>(end - first));
                }
            }
            hand_over_.end(rank, stream);
        }
    }
    void settle(engine::Worker& worker, engine::Stream& stream, engine::Rendezvous& meeting) override
    {
        hand_over_.settle(worker.rank(), stream, meeting);
    }
    void reduce_scatter(engine::Worker& worker, engine::Rendezvous& meeting, const Reduce& reduce) override
    {
        const int rank = worker.rank();
        engine::Stream& stream = worker.stream();
        // What others need lies before and behind the device's own slice.
        const Range own = reduce.slice(rank);
        const Range touched = reduce.touched[static_cast<std::size_t>(rank)];
        for (const Range& out : {Range{touched.first, std::min(touched.end, own.first)},
                                 Range{std::max(touched.first, own.end), touched.end}}) {
            stream.copy(sums_of(rank, reduce) + reduce.offset(out.first), reduce.place(rank, out.first),
                        reduce.bytes(out));
        }
        hand_over_.publish(rank, stream, meeting);
        // The others' are read where they are: in pinned memory, which a kernel reads at the speed of the link.
        std::vector<void*> readable(reduce.partials.begin(), reduce.partials.end());
        for (int from = 0; from < reduce.devices(); ++from) {
            if (from != rank) {
                readable[static_cast<std::size_t>(from)] = sums_of(from, reduce);
            }
        }
        Reduce through_host = reduce;
        through_host.partials = readable;
        add_sums(worker, reduce, through_host.sums(rank));
        hand_over_.end(rank, stream);
    }

private:
    /// Where entry 0 of a device's sums would be in its pinned memory.
    std::byte* sums_of(int rank, const Reduce& reduce) const
    {
        return static_cast<std::byte*>(bounce_[static_cast<std::size_t>(rank)].data()) -
               reduce.offset(reduce.touched[static_cast<std::size_t>(rank)].first);
    }

    std::vector<engine::PinnedBuffer> bounce_;
    std::int64_t bytes_;
    engine::HandOver hand_over_;
};

class HostTransport final : public Transport {
public:
    std::string name() const override { return "host"; }
    std::unique_ptr<Channel> make_channel(int devices, std::int64_t bytes, std::vector<std::int64_t>) override
    {
        return std::make_unique<HostChannel>(devices, bytes);
    }
    void open(Channel& channel, engine::Worker& worker) override { dynamic_cast<HostChannel&>(channel).open(worker); }
};

constexpr std::array<const char*, 3> names{"peer", "nccl", "host"};

}  // namespace

std::unique_ptr<Transport> make_host_transport() { return std::make_unique<HostTransport>(); }

std::span<const char* const> transport_names() { return names; }

std::unique_ptr<Transport> make_transport(const std::string& name,
                                          std::span<const std::unique_ptr<engine::Worker>> workers,
                                          std::chrono::steady_clock::duration limit)
{
    if (name == "host") {
        return make_host_transport();
    }
    return name == "peer" ? make_peer_transport(workers) : make_nccl_transport(workers, limit);
}

bool wait_for_stream(engine::Worker& worker, std::chrono::steady_clock::duration limit)
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

void test_with_data(Transport& transport, std::span<const std::unique_ptr<engine::Worker>> workers,
                    std::chrono::steady_clock::duration limit, engine::JobQueue* shared)
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
    std::optional<engine::JobQueue> unshared;
    engine::JobQueue& jobs = shared != nullptr
                                 ? *shared
                                 : unshared.emplace(workers, false, [&](std::uint64_t job) { transport.give_up(job); });
    const auto clean_up = [&] {
        jobs.submit([&](engine::Worker& worker, engine::Rendezvous&) {
                worker.stream().synchronize();
                channel->close(worker.rank());
                if (buffers[worker.rank()] != nullptr) {
                    worker.device().deallocate(buffers[worker.rank()], static_cast<std::size_t>(total_bytes));
                }
            })
            .get();
    };
    try {
        jobs.submit([&](engine::Worker& worker, engine::Rendezvous&) {
                const int rank = worker.rank();
                transport.open(*channel, worker);
                buffers[rank] = worker.device().allocate(static_cast<std::size_t>(total_bytes));
                std::vector<std::uint64_t> zeros(slice_words * devices, 0);
                worker.device().upload(worker.stream(), buffers[rank], zeros.data(), zeros.size() * 8);
            })
            .get();
        jobs.submit([&](engine::Worker& worker, engine::Rendezvous& meeting) {
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

void Gather::pack(engine::Worker& worker, engine::Stream& stream) const
{
    if (halo == nullptr) {
        return;
    }
    const auto context = worker.device().context(stream);
    const std::int64_t n = halo->buffer_entries(worker.rank());
    void* const out = packed[static_cast<std::size_t>(worker.rank())];
    if (entry_bytes == sizeof(float)) {
        kernels::pack(static_cast<const float*>(slice), packed_list, n, static_cast<float*>(out), context);
    } else {
        kernels::pack(static_cast<const double*>(slice), packed_list, n, static_cast<double*>(out), context);
    }
}

void add_sums(engine::Worker& worker, const Reduce& reduce, std::span<const Sums> sums)
{
    const Range slice = reduce.slice(worker.rank());
    const auto add = [&]<class T>(T* y) {
        std::array<kernels::PartialSums<T>, kernels::most_partials> parts;
        int count = 0;
        T beta = static_cast<T>(reduce.beta);
        const auto flush = [&] {
            kernels::add_partials(y, slice.first, slice.end, beta, parts.data(), count, worker.context());
            count = 0;
            beta = T{1};
        };
        for (const Sums& one : sums) {
            if (one.range.empty()) {
                continue;
            }
            if (count == kernels::most_partials) {
                flush();
            }
            parts[static_cast<std::size_t>(count++)] = {static_cast<const T*>(one.entry_zero), one.range.first,
                                                        one.range.end};
        }
        if (count > 0 || beta != T{1}) {
            flush();
        }
    };
    if (reduce.entry_bytes == sizeof(double)) {
        add(static_cast<double*>(reduce.y));
    } else {
        add(static_cast<float*>(reduce.y));
    }
}

double merge_seconds(const std::string& name, std::int64_t received_bytes)
{
    struct Cost {
        const char* name;
        double latency;           // seconds
        double bytes_per_second;  // of one device while all receive
    };
    // Orders of magnitude for NVLink, NCCL's launch, and PCIe 5 both ways; links only have to be told from each other.
    static constexpr std::array<Cost, 3> costs{{{"peer", 8e-6, 300e9}, {"nccl", 20e-6, 300e9}, {"host", 30e-6, 50e9}}};
    const auto* const cost = std::find_if(costs.begin(), costs.end(), [&](const Cost& c) { return c.name == name; });
    return cost == costs.end() ? 0.0 : cost->latency + static_cast<double>(received_bytes) / cost->bytes_per_second;
}

Connection connect(std::span<const std::unique_ptr<engine::Worker>> workers, const std::vector<std::string>& order,
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

}  // namespace rmsp::transport
