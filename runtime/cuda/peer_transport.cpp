#include <cuda_runtime.h>

#include <array>

#include <fmt/format.h>

#include <kernels/support/support.hpp>

#include "runtime/cuda/cuda_backend.hpp"
#include "runtime/cuda/cuda_device.hpp"
#include "runtime/hand_over.hpp"
#include "runtime/job.hpp"

namespace rmsp::runtime {
namespace {

class PeerChannel final : public Channel {
public:
    explicit PeerChannel(int devices) : hand_over_(devices) {}

    void open(Worker& worker) { hand_over_.open(worker.rank(), worker.device()); }
    void close(int rank) noexcept override { hand_over_.close(rank); }

    void gather(Worker& worker, Rendezvous& meeting, const Gather& gather, const std::function<void()>& write) override
    {
        const int rank = worker.rank();
        Stream& stream = worker.stream();
        write();
        hand_over_.publish(rank, stream, meeting);
        std::array<kernels::CopyPart, kernels::most_copy_parts> parts;
        int count = 0;
        const auto flush = [&] {
            kernels::copy_parts(parts.data(), count, worker.context());
            count = 0;
        };
        for (int step = 1; step < gather.devices(); ++step) {
            const int other = (rank + step) % gather.devices();
            const Range part = gather.part(other, rank);
            if (part.empty()) {
                continue;
            }
            if (count == kernels::most_copy_parts) {
                flush();
            }
            parts[static_cast<std::size_t>(count++)] = {gather.place(rank, part.first), gather.place(other, part.first),
                                                        static_cast<std::int64_t>(gather.bytes(part))};
        }
        flush();
        hand_over_.end(rank, stream);
    }
    void settle(Worker& worker, Rendezvous& meeting) override
    {
        hand_over_.settle(worker.rank(), worker.stream(), meeting);
    }

private:
    HandOver hand_over_;
};

class PeerTransport final : public Transport {
public:
    std::string name() const override { return "peer"; }
    std::unique_ptr<Channel> make_channel(int devices, std::int64_t) override
    {
        return std::make_unique<PeerChannel>(devices);
    }
    void open(Channel& channel, Worker& worker) override { dynamic_cast<PeerChannel&>(channel).open(worker); }
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
    JobQueue jobs(workers, false);
    jobs.submit([&](Worker& worker, Rendezvous&) {
            for (const auto& other : workers) {
                if (other->rank() != worker.rank() && !enable_peer_access(worker, *other)) {
                    throw Error(ErrorCode::device,
                                fmt::format("GPU {} cannot reach the memory of GPU {}", worker.device().info().index,
                                            other->device().info().index));
                }
            }
        })
        .get();
    return std::make_unique<PeerTransport>();
}

}  // namespace rmsp::runtime
