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
    void reduce_scatter(Worker& worker, Rendezvous& meeting, const Reduce& reduce) override
    {
        const int rank = worker.rank();
        hand_over_.publish(rank, worker.stream(), meeting);
        add_sums(worker, reduce, reduce.sums(rank));
        hand_over_.end(rank, worker.stream());
    }

private:
    HandOver hand_over_;
};

class PeerTransport final : public Transport {
public:
    std::string name() const override { return "peer"; }
    std::unique_ptr<Channel> make_channel(int devices, std::int64_t, std::vector<std::int64_t>) override
    {
        return std::make_unique<PeerChannel>(devices);
    }
    void open(Channel& channel, Worker& worker) override { dynamic_cast<PeerChannel&>(channel).open(worker); }
};

}  // namespace

std::unique_ptr<Transport> make_peer_transport(std::span<const std::unique_ptr<Worker>> workers)
{
    const auto ordinal = [&](std::size_t i) { return dynamic_cast<CudaDevice&>(workers[i]->device()).ordinal(); };
    for (std::size_t i = 0; i < workers.size(); ++i) {
        for (std::size_t j = 0; j < workers.size(); ++j) {
            int can = 0;
            if (i != j) {
                cuda_check(cudaDeviceCanAccessPeer(&can, ordinal(i), ordinal(j)), "cudaDeviceCanAccessPeer");
                if (can == 0) {
                    throw Error(ErrorCode::device,
                                fmt::format("GPU {} cannot reach the memory of GPU {}", ordinal(i), ordinal(j)));
                }
            }
        }
    }
    JobQueue jobs(workers, false);
    jobs.submit([&](Worker& worker, Rendezvous&) {
            for (std::size_t j = 0; j < workers.size(); ++j) {
                if (static_cast<int>(j) != worker.rank()) {
                    const cudaError_t status = cudaDeviceEnablePeerAccess(ordinal(j), 0);
                    if (status != cudaErrorPeerAccessAlreadyEnabled) {
                        cuda_check(status, "cudaDeviceEnablePeerAccess");
                    } else {
                        (void)cudaGetLastError();
                    }
                }
            }
        })
        .get();
    return std::make_unique<PeerTransport>();
}

}  // namespace rmsp::runtime
