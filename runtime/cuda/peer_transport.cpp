#include <cuda_runtime.h>

#include <atomic>
#include <utility>

#include <fmt/format.h>

#include <kernels/support/exchange.hpp>

#include "runtime/cuda/cuda_backend.hpp"
#include "runtime/cuda/cuda_device.hpp"
#include "runtime/hand_over.hpp"
#include "runtime/job.hpp"

namespace rmsp::runtime {
namespace {

// An epoch is the number of the job and, below it, which exchange of that job it is: all devices count alike, also past jobs
// that failed on some of them.
constexpr unsigned exchange_bits = 8;

/// Devices wait for each other inside their exchange kernels, through words in each other's memory: device i has one that says
/// that the memory of device j may be used, and one that says that j has used that of i. Ranges are copied by who needs them,
/// single entries are pushed by their owner, which reads its memory at random so that the link carries whole lines.
class PeerChannel final : public Channel {
public:
    PeerChannel(int devices, const std::uint64_t* given_up) : ends_(devices), hand_over_(devices), given_up_(given_up)
    {
    }

    void open(Worker& worker)
    {
        End& end = ends_[worker.rank()];
        end.words = kernels::DeviceArray<std::uint64_t>(worker.device(), 2 * ends_.size());
        end.arrived = kernels::DeviceArray<unsigned>(worker.device(), kernels::most_peer_links);
        auto* const stream = static_cast<cudaStream_t>(worker.stream().native());
        cuda_check(cudaMemsetAsync(end.words.data(), 0, end.words.size() * sizeof(std::uint64_t), stream),
                   "cudaMemsetAsync");
        cuda_check(cudaMemsetAsync(end.arrived.data(), 0, end.arrived.size() * sizeof(unsigned), stream),
                   "cudaMemsetAsync");
        hand_over_.open(worker.rank(), worker.device());
        worker.stream().synchronize();
    }
    void close(int rank) noexcept override
    {
        ends_[rank] = End();
        hand_over_.close(rank);
    }

    void gather(Worker& worker, Stream& stream, Rendezvous& meeting, const Gather& gather,
                const std::function<void()>& write) override
    {
        const int rank = worker.rank();
        End& end = ends_[rank];
        write();
        if (gather.large) {
            gather.pack(worker, stream);
            hand_over_.publish(rank, stream, meeting);
            for (int step = 1; step < gather.devices(); ++step) {
                const Transfer in = gather.transfer((rank + step) % gather.devices(), rank);
                stream.copy(in.to, in.from, in.bytes);
            }
            hand_over_.end(rank, stream);
            end.by_events = true;
            return;
        }
        if (end.job != meeting.job()) {
            end.job = meeting.job();
            end.exchanges = 0;
        }
        kernels::PeerExchange exchange;
        exchange.epoch = (end.job << exchange_bits) + ++end.exchanges;
        exchange.given_up = given_up_;
        exchange.arrived = end.arrived.data();
        exchange.slice = gather.slice;
        exchange.entry_bytes = static_cast<int>(gather.entry_bytes);
        for (int step = 1; step < gather.devices(); ++step) {
            const int other = (rank + step) % gather.devices();
            const Transfer in = gather.transfer(other, rank);
            const Transfer out = gather.transfer(rank, other);
            if (in.empty() && out.empty()) {
                continue;
            }
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
        }
        // A kernel waits for those of other devices: each is queued only when all workers are about to queue theirs, so that
        // neither an error nor a call that waits for a device can come between them.
        meeting.arrive_and_wait();
        kernels::exchange_with_peers(exchange, worker.device().context(stream));
        if (meeting.in_turns()) {
            // Who has the turn may wait for its device next.
            meeting.arrive_and_wait();
        }
    }
    void reduce_scatter(Worker& worker, Rendezvous& meeting, const Reduce& reduce) override
    {
        const int rank = worker.rank();
        hand_over_.publish(rank, worker.stream(), meeting);
        add_sums(worker, reduce, reduce.sums(rank));
        hand_over_.end(rank, worker.stream());
        ends_[rank].by_events = true;
    }
    // An exchange kernel ends when the others have read the slice.
    void settle(Worker& worker, Stream& stream, Rendezvous& meeting) override
    {
        if (std::exchange(ends_[worker.rank()].by_events, false)) {
            hand_over_.settle(worker.rank(), stream, meeting);
        }
    }

private:
    struct End {
        kernels::DeviceArray<std::uint64_t> words;
        kernels::DeviceArray<unsigned> arrived;
        std::uint64_t job = 0;
        std::uint64_t exchanges = 0;  ///< of that job so far
        bool by_events = false;       ///< how the others are told since the last settle()
    };
    std::uint64_t* ready(int on, int of) const noexcept { return ends_[on].words.data() + of; }
    std::uint64_t* done(int on, int by) const noexcept { return ends_[on].words.data() + ends_.size() + by; }

    std::vector<End> ends_;
    HandOver hand_over_;  ///< of reductions, and of what is large
    const std::uint64_t* given_up_;
};

class PeerTransport final : public Transport {
public:
    PeerTransport(PinnedBuffer given_up, std::vector<int> ordinals)
        : given_up_(std::move(given_up)), ordinals_(std::move(ordinals))
    {
        word() = 0;
    }

    std::string name() const override { return "peer"; }
    std::unique_ptr<Channel> make_channel(int devices, std::int64_t, std::vector<std::int64_t>) override
    {
        return std::make_unique<PeerChannel>(devices, &word());
    }
    void open(Channel& channel, Worker& worker) override { dynamic_cast<PeerChannel&>(channel).open(worker); }
    void open_pool(Worker& worker) override { dynamic_cast<CudaDevice&>(worker.device()).share_pool(ordinals_); }
    void give_up(std::uint64_t job) noexcept override
    {
        const std::atomic_ref<std::uint64_t> last(word());
        const std::uint64_t epoch = ((job + 1) << exchange_bits) - 1;
        std::uint64_t before = last.load();
        while (before < epoch && !last.compare_exchange_weak(before, epoch)) {
        }
    }

private:
    std::uint64_t& word() const noexcept { return *static_cast<std::uint64_t*>(given_up_.data()); }

    PinnedBuffer given_up_;
    std::vector<int> ordinals_;
};

}  // namespace

bool enable_peer_access(Worker& worker, Worker& other)
{
    const int own = dynamic_cast<CudaDevice&>(worker.device()).ordinal();
    const int peer = dynamic_cast<CudaDevice&>(other.device()).ordinal();
    int can = 0;
    cuda_check(cudaDeviceCanAccessPeer(&can, own, peer), "cudaDeviceCanAccessPeer");
    if (can == 0) {
        return false;
    }
    const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
    if (status == cudaErrorPeerAccessAlreadyEnabled) {
        (void)cudaGetLastError();
    } else {
        cuda_check(status, "cudaDeviceEnablePeerAccess");
    }
    return true;
}

std::unique_ptr<Transport> make_peer_transport(std::span<const std::unique_ptr<Worker>> workers)
{
    if (workers.size() > kernels::most_peer_links) {
        throw Error(ErrorCode::device, fmt::format("peer memory serves at most {} GPUs", kernels::most_peer_links));
    }
    PinnedBuffer given_up;
    JobQueue jobs(workers, false);
    jobs.submit([&](Worker& worker, Rendezvous&) {
            if (worker.rank() == 0) {
                given_up = PinnedBuffer(worker.device(), sizeof(std::uint64_t));
            }
            for (const auto& other : workers) {
                if (other->rank() != worker.rank() && !enable_peer_access(worker, *other)) {
                    throw Error(ErrorCode::device,
                                fmt::format("GPU {} cannot reach the memory of GPU {}", worker.device().info().index,
                                            other->device().info().index));
                }
            }
        })
        .get();
    return std::make_unique<PeerTransport>(std::move(given_up), ordinals_of(workers));
}

}  // namespace rmsp::runtime
