#include <chrono>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "runtime/cuda/cuda_backend.hpp"
#include "runtime/cuda/cuda_device.hpp"

#ifdef RMSP_HAVE_NCCL
#include <nccl.h>

namespace rmsp::runtime {
namespace {

using Clock = std::chrono::steady_clock;

/// Checks a call on non-blocking communicators, which may still be at work on it.
void nccl_check(ncclResult_t status, const char* call)
{
    if (status != ncclSuccess && status != ncclInProgress) {
        throw Error(ErrorCode::device,
                    fmt::format("{}: {} ({})", call, ncclGetErrorString(status), ncclGetLastError(nullptr)));
    }
}

/// Waits until a communicator is done with what it was asked for, as far as the host is concerned: only then has the work
/// been queued on the stream.
/// \throws Error(device) if it failed, or is not done at the deadline
void nccl_wait(ncclComm_t communicator, const char* call, Clock::time_point deadline)
{
    ncclResult_t status = ncclInProgress;
    while (true) {
        nccl_check(ncclCommGetAsyncError(communicator, &status), "ncclCommGetAsyncError");
        nccl_check(status, call);
        if (status == ncclSuccess) {
            return;
        }
        if (Clock::now() > deadline) {
            throw Error(ErrorCode::device, fmt::format("{}: still at work when its time was up", call));
        }
        std::this_thread::yield();
    }
}

/// Communicators of all devices. They do not block, so that a device or a driver that does not answer is an error and not
/// a hang.
class NcclTransport final : public Transport {
public:
    NcclTransport(const std::vector<int>& ordinals, Clock::duration limit)
        : limit_(limit), communicators_(ordinals.size(), nullptr)
    {
        int previous = -1;
        (void)cudaGetDevice(&previous);
        try {
            connect(ordinals);
        } catch (...) {
            abort_all();
            (void)cudaSetDevice(previous);
            throw;
        }
        (void)cudaSetDevice(previous);
    }
    // Every stream is done by now, so there is nothing to finish together with the other ranks.
    ~NcclTransport() override { abort_all(); }
    NcclTransport(const NcclTransport&) = delete;
    NcclTransport& operator=(const NcclTransport&) = delete;

    std::string name() const override { return "nccl"; }
    std::unique_ptr<Channel> make_channel(int devices, std::int64_t bytes) override;
    void open(Channel&, Worker&) override {}
    void abort(int rank) noexcept override
    {
        ncclComm_t& communicator = communicators_[static_cast<std::size_t>(rank)];
        if (communicator != nullptr) {
            (void)ncclCommAbort(communicator);
            (void)cudaGetLastError();
            communicator = nullptr;
        }
    }

    /// \throws Error(device) after abort()
    ncclComm_t communicator(int rank) const
    {
        const ncclComm_t communicator = communicators_[static_cast<std::size_t>(rank)];
        if (communicator == nullptr) {
            throw Error(ErrorCode::device, "NCCL was given up after it did not answer in time");
        }
        return communicator;
    }
    /// Waits until what a worker asked for is on its stream; gives up at the limit. \throws Error(device)
    void wait(int rank, const char* call)
    {
        try {
            nccl_wait(communicator(rank), call, Clock::now() + limit_);
        } catch (...) {
            abort(rank);
            throw;
        }
    }

private:
    void abort_all() noexcept
    {
        for (std::size_t rank = 0; rank < communicators_.size(); ++rank) {
            abort(static_cast<int>(rank));
        }
    }
    /// All at once on this thread: lazy initialisation inside the workers can hang.
    void connect(const std::vector<int>& ordinals)
    {
        ncclUniqueId id;
        nccl_check(ncclGetUniqueId(&id), "ncclGetUniqueId");
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        const auto end = Clock::now() + limit_;
        nccl_check(ncclGroupStart(), "ncclGroupStart");
        for (std::size_t i = 0; i < ordinals.size(); ++i) {
            cuda_check(cudaSetDevice(ordinals[i]), "cudaSetDevice");
            nccl_check(ncclCommInitRankConfig(&communicators_[i], static_cast<int>(ordinals.size()), id,
                                              static_cast<int>(i), &config),
                       "ncclCommInitRankConfig");
        }
        nccl_check(ncclGroupEnd(), "ncclGroupEnd");
        for (const ncclComm_t communicator : communicators_) {
            nccl_wait(communicator, "ncclCommInitRankConfig", end);
        }
    }

    Clock::duration limit_;
    std::vector<ncclComm_t> communicators_;  // each used by its own worker
};

class NcclChannel final : public Channel {
public:
    explicit NcclChannel(NcclTransport& transport) : transport_(transport) {}

    void close(int) noexcept override {}

    void gather(Worker& worker, Stream& stream, Rendezvous& meeting, const Gather& gather,
                const std::function<void()>& write) override
    {
        const int rank = worker.rank();
        const ncclComm_t communicator = transport_.communicator(rank);
        auto* const queue = static_cast<cudaStream_t>(stream.native());
        write();
        // A rank that failed before this point would leave the others inside the collective for ever.
        meeting.arrive_and_wait();
        if (everything(gather)) {
            const Range slice = gather.part(rank, rank);
            nccl_check(ncclAllGather(gather.place(rank, slice.first), gather.place(rank, 0), gather.bytes(slice),
                                     ncclChar, communicator, queue),
                       "ncclAllGather");
            transport_.wait(rank, "ncclAllGather");
            return;
        }
        nccl_check(ncclGroupStart(), "ncclGroupStart");
        for (int other = 0; other < gather.devices(); ++other) {
            if (other == rank) {
                continue;
            }
            const Range out = gather.part(rank, other);
            if (!out.empty()) {
                nccl_check(
                    ncclSend(gather.place(rank, out.first), gather.bytes(out), ncclChar, other, communicator, queue),
                    "ncclSend");
            }
            const Range in = gather.part(other, rank);
            if (!in.empty()) {
                nccl_check(
                    ncclRecv(gather.place(rank, in.first), gather.bytes(in), ncclChar, other, communicator, queue),
                    "ncclRecv");
            }
        }
        nccl_check(ncclGroupEnd(), "ncclGroupEnd");
        transport_.wait(rank, "ncclSend and ncclRecv");
    }

    // A stream's own sends are done before what follows them.
    void settle(Worker&, Stream&, Rendezvous&) override {}

private:
    /// Whether all slices are equal and everyone needs all of them: what NCCL has its own collective for.
    static bool everything(const Gather& gather)
    {
        const std::int64_t slice = gather.slices[1] - gather.slices[0];
        for (std::size_t i = 0; i < gather.needed.size(); ++i) {
            if (gather.slices[i + 1] - gather.slices[i] != slice ||
                gather.needed[i] != Range{0, gather.slices[gather.needed.size()]}) {
                return false;
            }
        }
        return slice > 0;
    }

    NcclTransport& transport_;
};

std::unique_ptr<Channel> NcclTransport::make_channel(int, std::int64_t) { return std::make_unique<NcclChannel>(*this); }

}  // namespace

std::unique_ptr<Transport> make_nccl_transport(std::span<const std::unique_ptr<Worker>> workers,
                                               std::chrono::steady_clock::duration limit)
{
    std::vector<int> ordinals;
    for (const auto& worker : workers) {
        ordinals.push_back(dynamic_cast<CudaDevice&>(worker->device()).ordinal());
    }
    return std::make_unique<NcclTransport>(ordinals, limit);
}

}  // namespace rmsp::runtime

#else

namespace rmsp::runtime {

std::unique_ptr<Transport> make_nccl_transport(std::span<const std::unique_ptr<Worker>>,
                                               std::chrono::steady_clock::duration)
{
    throw NotCompiled("the NCCL transport");
}

}  // namespace rmsp::runtime

#endif
