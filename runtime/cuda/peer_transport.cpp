#include <cuda_runtime.h>

#include <atomic>

#include <fmt/format.h>

#include <kernels/support/exchange.hpp>

#include "runtime/cuda/cuda_backend.hpp"
#include "runtime/cuda/cuda_device.hpp"
#include "runtime/job.hpp"

namespace rmsp::runtime {
namespace {

// An epoch is the number of the job and, below it, which exchange of that job it is: all devices count alike, also past jobs
// that failed on some of them.
constexpr unsigned exchange_bits = 8;

/// Devices wait for each other inside their exchange kernels, through words in each other's memory: device i has one that says
/// that the data of device j may be read, and one that says that j has read those of i.
class PeerChannel final : public Channel {
public:
    PeerChannel(int devices, const std::uint64_t* given_up) : ends_(devices), given_up_(given_up) {}

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
        worker.stream().synchronize();
    }
    void close(int rank) noexcept override { ends_[rank] = End(); }

    void gather(Worker& worker, Stream& stream, Rendezvous& meeting, const Gather& gather,
                const std::function<void()>& write) override
    {
        const int rank = worker.rank();
        End& end = ends_[rank];
        write();
        if (end.job != meeting.job()) {
            end.job = meeting.job();
            end.exchanges = 0;
        }
        kernels::PeerExchange exchange;
        exchange.epoch = (end.job << exchange_bits) + ++end.exchanges;
        exchange.given_up = given_up_;
        exchange.arrived = end.arrived.data();
        for (int step = 1; step < gather.devices(); ++step) {
            const int other = (rank + step) % gather.devices();
            const Range in = gather.part(other, rank);
            const Range out = gather.part(rank, other);
            if (in.empty() && out.empty()) {
                continue;
            }
            kernels::PeerLink& link = exchange.link[exchange.links++];
            if (!in.empty()) {
                link.in = {gather.place(rank, in.first), gather.place(other, in.first),
                           static_cast<std::int64_t>(gather.bytes(in))};
                link.ready = ready(rank, other);
                link.peer_read = read(other, rank);
            }
            if (!out.empty()) {
                link.peer_ready = ready(other, rank);
                link.read = read(rank, other);
            }
        }
        // A kernel waits for those of other devices: each is queued only when all workers are about to queue theirs, so that
        // neither an error nor a call that waits for a device can come between them.
        meeting.arrive_and_wait();
        kernels::exchange_with_peers(exchange, worker.device().context(stream));
    }
    // The exchange ends when the data have been read.
    void settle(Worker&, Stream&, Rendezvous&) override {}

private:
    struct End {
        kernels::DeviceArray<std::uint64_t> words;
        kernels::DeviceArray<unsigned> arrived;
        std::uint64_t job = 0;
        std::uint64_t exchanges = 0;  ///< of that job so far
    };
    std::uint64_t* ready(int on, int of) const noexcept { return ends_[on].words.data() + of; }
    std::uint64_t* read(int on, int by) const noexcept { return ends_[on].words.data() + ends_.size() + by; }

    std::vector<End> ends_;
    const std::uint64_t* given_up_;
};

class PeerTransport final : public Transport {
public:
    explicit PeerTransport(PinnedBuffer given_up) : given_up_(std::move(given_up)) { word() = 0; }

    std::string name() const override { return "peer"; }
    std::unique_ptr<Channel> make_channel(int devices, std::int64_t) override
    {
        return std::make_unique<PeerChannel>(devices, &word());
    }
    void open(Channel& channel, Worker& worker) override { dynamic_cast<PeerChannel&>(channel).open(worker); }
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
    return std::make_unique<PeerTransport>(std::move(given_up));
}

}  // namespace rmsp::runtime
