#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <kernels/steps/exchange/exchange.hpp>

#include "runtime/engine/cuda/cuda_backend.hpp"
#include "runtime/engine/cuda/cuda_device.hpp"
#include "runtime/engine/hand_over.hpp"
#include "runtime/engine/job_queue.hpp"
#include "runtime/transport/cuda/cuda_transports.hpp"
#include "runtime/transport/given_up.hpp"
#include "runtime/transport/spares.hpp"

namespace rmsp::transport {
namespace {

// Most data that a device receives by lines: beyond, that they take a third more of the links costs more than the
// messages and fences that they spare. (Fitted to exchanges of two H200.)
constexpr std::int64_t most_by_lines = std::int64_t{2} << 20;

/// Of data from one device to another, those that lines carry where `bytes` may be under way.
std::int64_t bytes_by_lines(int devices, std::int64_t bytes)
{
    return std::min(bytes, most_by_lines / std::max(devices - 1, 1));
}

/// Bytes of one set of lines for so much data.
std::size_t line_set(std::int64_t by_lines)
{
    return static_cast<std::size_t>(kernels::line_bytes(by_lines) + 255) / 256 * 256;
}

// What a channel has of a device's memory: two sets of lines from each device, words, and counters of links.
std::size_t bytes_of_lines(std::size_t devices, std::int64_t by_lines) { return 2 * devices * line_set(by_lines); }
std::size_t bytes_of_words(std::size_t devices) { return 2 * devices * sizeof(std::uint64_t); }
std::size_t bytes_of_end(std::size_t devices, std::int64_t by_lines)
{
    return bytes_of_lines(devices, by_lines) + bytes_of_words(devices) + kernels::most_peer_links * sizeof(unsigned);
}

/// Devices wait for each other inside their exchange kernels, through words in each other's memory: device i has one
/// that says that the memory of device j may be used, and one that says that j has used that of i. Ranges are copied by
/// who needs them, single entries are pushed by their owner, which reads its memory at random so that the link carries
/// whole lines.
class PeerChannel final : public Channel {
public:
    PeerChannel(int devices, std::int64_t bytes, bool share_gpus, bool kernels_wait, const GivenUp& given_up,
                Spares& spares)
        : ends_(devices),
          by_lines_(bytes_by_lines(devices, bytes)),
          share_gpus_(share_gpus),
          kernels_wait_(kernels_wait),
          hand_over_(devices),
          given_up_(given_up),
          spares_(spares)
    {
    }

    void open(engine::Worker& worker)
    {
        if (share_gpus_) {
            kernels::load_exchanges(worker.context());
        }
        End& end = ends_[worker.rank()];
        const std::size_t lines = bytes_of_lines(ends_.size(), by_lines_);
        const std::size_t words = bytes_of_words(ends_.size());
        end.memory = spares_.take(worker, bytes_of_end(ends_.size(), by_lines_));
        end.words = reinterpret_cast<std::uint64_t*>(end.memory.data() + lines);
        end.arrived = reinterpret_cast<unsigned*>(end.memory.data() + lines + words);
        engine::cuda_check(cudaMemsetAsync(end.memory.data(), 0, end.memory.size(),
                                           static_cast<cudaStream_t>(worker.stream().native())),
                           "cudaMemsetAsync");
        end.line_set.assign(ends_.size(), 0);
        hand_over_.open(worker.rank(), worker.device());
        worker.stream().synchronize();
    }
    void close(int rank) noexcept override
    {
        spares_.leave(rank, std::move(ends_[rank].memory));
        ends_[rank] = End();
        hand_over_.close(rank);
    }

    void gather(engine::Worker& worker, engine::Stream& stream, engine::Rendezvous& meeting, const Gather& gather,
                const std::function<void()>& write) override
    {
        const int rank = worker.rank();
        End& end = ends_[rank];
        write();
        if (gather.large || !kernels_wait_) {
            gather.pack(worker, stream);
            hand_over_.publish(rank, stream, meeting);
            each_peer(gather, rank,
                      [&](int, const Transfer& in, const Transfer&) { stream.copy(in.to, in.from, in.bytes); });
            hand_over_.end(rank, stream);
            end.by_events = true;
            return;
        }
        if (fits_lines(gather)) {
            gather_by_lines(worker, stream, meeting, gather);
            return;
        }
        kernels::PeerExchange exchange;
        exchange.terms.epoch = next_epoch(rank, meeting);
        exchange.terms.given_up = given_up_.word(exchange.terms.epoch);
        exchange.terms.arrived = end.arrived;
        exchange.terms.slice = gather.slice;
        exchange.terms.entry_bytes = static_cast<int>(gather.entry_bytes);
        each_peer(gather, rank, [&](int other, const Transfer& in, const Transfer& out) {
            kernels::PeerLink& link = exchange.link[exchange.links++];
            if (gather.halo != nullptr && !out.empty()) {
                link.out = {out.to, gather.packed_list + gather.halo->sent_at(rank, other),
                            gather.halo->count(rank, other)};
            } else if (gather.halo == nullptr && !in.empty()) {
                link.in = {in.to, in.from, static_cast<std::int64_t>(in.bytes)};
            }
            const bool acts = link.in.bytes > 0 || link.out.n > 0;
            const bool is_acted_on = gather.halo != nullptr ? !in.empty() : !out.empty();
            if (acts) {
                link.ready = ready(rank, other);
                link.peer_done = done(other, rank);
            }
            if (is_acted_on) {
                link.peer_ready = ready(other, rank);
                link.done = done(rank, other);
            }
        });
        queue(meeting, [&] { kernels::exchange_with_peers(exchange, worker.device().context(stream)); });
    }
    void reduce_scatter(engine::Worker& worker, engine::Rendezvous& meeting, const Reduce& reduce) override
    {
        const int rank = worker.rank();
        hand_over_.publish(rank, worker.stream(), meeting);
        add_sums(worker, reduce, reduce.sums(rank));
        hand_over_.end(rank, worker.stream());
        ends_[rank].by_events = true;
    }
    // An exchange kernel ends when the others have read the slice.
    void settle(engine::Worker& worker, engine::Stream& stream, engine::Rendezvous& meeting) override
    {
        if (std::exchange(ends_[worker.rank()].by_events, false)) {
            hand_over_.settle(worker.rank(), stream, meeting);
        }
    }

private:
    struct End {
        kernels::DeviceArray<std::byte> memory;  ///< lines from each device, two sets; then what follows
        std::uint64_t* words = nullptr;
        unsigned* arrived = nullptr;
        std::vector<int> line_set;   ///< which set this device writes next, on each of the others
        std::uint64_t by_lines = 0;  ///< epoch of its last exchange by lines
        std::uint64_t job = 0;
        std::uint64_t exchanges = 0;  ///< of that job so far
        bool by_events = false;       ///< how the others are told since the last settle()
    };

    /// Calls f(other, in, out) for each device that this one gets something from or sends something to. Begins with its
    /// successor, so that not all begin with the same one.
    template <class F>
    static void each_peer(const Gather& gather, int rank, const F& f)
    {
        for (int step = 1; step < gather.devices(); ++step) {
            const int other = (rank + step) % gather.devices();
            const Transfer in = gather.transfer(other, rank);
            const Transfer out = gather.transfer(rank, other);
            if (!in.empty() || !out.empty()) {
                f(other, in, out);
            }
        }
    }
    std::uint64_t next_epoch(int rank, const engine::Rendezvous& meeting)
    {
        End& end = ends_[rank];
        if (end.job != meeting.job()) {
            end.job = meeting.job();
            end.exchanges = 0;
        }
        return epoch_of(end.job, ++end.exchanges);
    }
    /// Queues a kernel that waits for those of other devices: only when all workers are about to queue theirs, so that
    /// neither an error nor a call that waits for a device can come between them.
    template <class Launch>
    void queue(engine::Rendezvous& meeting, const Launch& launch) const
    {
        meeting.arrive_and_wait();
        launch();
        if (meeting.in_turns() || share_gpus_) {
            // Who has the turn may wait for its device next. And where devices share a GPU, what one queues next may
            // wait for its kernel in front of another's, in the driver or where streams share a queue of the GPU.
            meeting.arrive_and_wait();
        }
    }

    std::byte* lines(int on, int from, int set) const noexcept
    {
        return ends_[on].memory.data() + static_cast<std::size_t>(2 * from + set) * line_set(by_lines_);
    }
    /// Whether lines carry it; on all devices alike.
    bool fits_lines(const Gather& gather) const
    {
        std::size_t most = 0;
        for (int rank = 0; rank < gather.devices(); ++rank) {
            each_peer(gather, rank, [&](int, const Transfer& in, const Transfer&) { most = std::max(most, in.bytes); });
        }
        return gather.entry_bytes % 4 == 0 && most <= static_cast<std::size_t>(by_lines_);
    }
    void gather_by_lines(engine::Worker& worker, engine::Stream& stream, engine::Rendezvous& meeting,
                         const Gather& gather)
    {
        const int rank = worker.rank();
        End& end = ends_[rank];
        if (end.by_lines != 0 && given_up_.last() >= end.by_lines) {
            // A peer may have given up its last exchange, and then does not know what this device has taken of its
            // lines.
            worker.stream().synchronize();
            worker.side_stream().synchronize();
        }
        kernels::LineExchange exchange;
        exchange.terms.epoch = next_epoch(rank, meeting);
        exchange.terms.given_up = given_up_.word(exchange.terms.epoch);
        exchange.terms.entry_bytes = static_cast<int>(gather.entry_bytes);
        std::array<int, kernels::most_peer_links> written{};
        each_peer(gather, rank, [&](int other, const Transfer& in, const Transfer& out) {
            written[exchange.links] = other;
            kernels::LineLink& link = exchange.link[exchange.links++];
            link.from = out.from;
            if (gather.halo != nullptr) {
                link.from = gather.slice;
                link.list = gather.packed_list + gather.halo->sent_at(rank, other);
            }
            link.bytes_out = static_cast<std::int64_t>(out.bytes);
            link.lines_out = lines(other, rank, end.line_set[other]);
            link.lines_in[0] = lines(rank, other, 0);
            link.lines_in[1] = lines(rank, other, 1);
            link.to = in.to;
            link.bytes_in = static_cast<std::int64_t>(in.bytes);
        });
        queue(meeting, [&] { kernels::exchange_lines(exchange, worker.device().context(stream)); });
        // With these devices alone: a set may be written again once an exchange with the same device has used the
        // other.
        for (int i = 0; i < exchange.links; ++i) {
            end.line_set[written[i]] = 1 - end.line_set[written[i]];
        }
        end.by_lines = exchange.terms.epoch;
    }
    std::uint64_t* ready(int on, int of) const noexcept { return ends_[on].words + of; }
    std::uint64_t* done(int on, int by) const noexcept { return ends_[on].words + ends_.size() + by; }

    std::vector<End> ends_;
    const std::int64_t by_lines_;  ///< most bytes of data from one device to another
    const bool share_gpus_;
    const bool kernels_wait_;
    engine::HandOver hand_over_;  ///< of reductions, and of what is large
    const GivenUp& given_up_;
    Spares& spares_;  ///< the transport's
};

class PeerTransport final : public Transport {
public:
    PeerTransport(engine::PinnedBuffer given_up, std::vector<int> ordinals, bool waits_on_shared)
        : given_up_(std::move(given_up)),
          ordinals_(std::move(ordinals)),
          share_gpus_(engine::share_gpus(ordinals_)),
          kernels_wait_(!share_gpus_ || waits_on_shared),
          spares_(ordinals_.size())
    {
    }

    std::string name() const override { return "peer"; }
    std::unique_ptr<Channel> make_channel(int devices, std::int64_t bytes, std::vector<std::int64_t>) override
    {
        return std::make_unique<PeerChannel>(devices, bytes, share_gpus_, kernels_wait_, given_up_, spares_);
    }
    std::int64_t channel_bytes(int devices, std::int64_t bytes, const std::int64_t* /*received*/) const override
    {
        return static_cast<std::int64_t>(
            bytes_of_end(static_cast<std::size_t>(devices), bytes_by_lines(devices, bytes)));
    }
    void open(Channel& channel, engine::Worker& worker) override
    {
        // Vectors are there.
        share_pool(worker);
        dynamic_cast<PeerChannel&>(channel).open(worker);
    }
    void open_pool(engine::Worker& worker) override
    {
        share_pool(worker);
        spares_.keep_from_now_on(worker.rank());
    }
    void give_back_spares(int rank) noexcept override { spares_.give_back(rank); }
    const volatile std::uint64_t* given_up() const noexcept override
    {
        return kernels_wait_ ? given_up_.word(0) : nullptr;
    }
    void give_up(std::uint64_t job) noexcept override { given_up_.note(job); }

private:
    void share_pool(engine::Worker& worker) const
    {
        dynamic_cast<engine::CudaDevice&>(worker.device()).share_pool(ordinals_);
    }

    GivenUp given_up_;
    std::vector<int> ordinals_;
    const bool share_gpus_;
    const bool kernels_wait_;
    Spares spares_;
};

}  // namespace

std::unique_ptr<Transport> connect_peer_transport(std::span<const std::unique_ptr<engine::Worker>> workers,
                                                  const ConnectOptions& options)
{
    if (workers.size() > kernels::most_peer_links) {
        throw Error(ErrorCode::device, fmt::format("peer memory serves at most {} GPUs", kernels::most_peer_links));
    }
    engine::PinnedBuffer given_up;
    engine::JobQueue jobs(workers, false);
    jobs.submit([&](engine::Worker& worker, engine::Rendezvous&) {
            if (worker.rank() == 0) {
                given_up = engine::PinnedBuffer(worker.device(), GivenUp::bytes);
            }
            for (const auto& other : workers) {
                if (other->rank() != worker.rank() && !engine::enable_peer_access(worker, *other)) {
                    throw Error(ErrorCode::device,
                                fmt::format("GPU {} cannot reach the memory of GPU {}", worker.device().info().index,
                                            other->device().info().index));
                }
            }
        })
        .get();
    return std::make_unique<PeerTransport>(std::move(given_up), ordinals_of(workers), options.waits_on_shared);
}

}  // namespace rmsp::transport
