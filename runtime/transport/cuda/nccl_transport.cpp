#include <chrono>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/engine/cuda/cuda_device.hpp"
#include "runtime/transport/cuda/cuda_transports.hpp"

#ifdef RMSP_HAVE_NCCL
#include "runtime/engine/cuda/nccl.hpp"
#include "runtime/transport/cuda/nccl_check.hpp"

namespace rmsp::transport {
namespace {

using engine::nccl;
using Clock = std::chrono::steady_clock;

/// Waits until a communicator is done with what it was asked for, as far as the host is concerned: only then has the
/// work been queued on the stream. \throws Error(device) if it failed, or is not done at the deadline
void nccl_wait(ncclComm_t communicator, const char* call, Clock::time_point deadline)
{
    ncclResult_t status = ncclInProgress;
    while (true) {
        nccl_check(nccl().ncclCommGetAsyncError(communicator, &status), "ncclCommGetAsyncError");
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

/// What each device sends in a reduction begins at a whole line.
constexpr std::size_t line = 256;
std::int64_t bytes_of_received(std::int64_t received, std::size_t devices)
{
    return received + static_cast<std::int64_t>(devices * line);
}

/// Communicators of all devices. They do not block, so that a device or a driver that does not answer is an error and
/// not a hang.
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
    std::unique_ptr<Channel> make_channel(int devices, std::int64_t bytes, std::vector<std::int64_t> received) override;
    std::int64_t channel_bytes(int devices, std::int64_t /*bytes*/, const std::int64_t* received) const override
    {
        return received == nullptr ? 0 : bytes_of_received(*received, static_cast<std::size_t>(devices));
    }
    void open(Channel& channel, engine::Worker& worker) override;
    void abort(int rank) noexcept override
    {
        ncclComm_t& communicator = communicators_[static_cast<std::size_t>(rank)];
        if (communicator != nullptr) {
            (void)nccl().ncclCommAbort(communicator);
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
        nccl_check(nccl().ncclGetUniqueId(&id), "ncclGetUniqueId");
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        const auto end = Clock::now() + limit_;
        nccl_check(nccl().ncclGroupStart(), "ncclGroupStart");
        for (std::size_t i = 0; i < ordinals.size(); ++i) {
            engine::cuda_check(cudaSetDevice(ordinals[i]), "cudaSetDevice");
            nccl_check(nccl().ncclCommInitRankConfig(&communicators_[i], static_cast<int>(ordinals.size()), id,
                                                     static_cast<int>(i), &config),
                       "ncclCommInitRankConfig");
        }
        nccl_check(nccl().ncclGroupEnd(), "ncclGroupEnd");
        for (const ncclComm_t communicator : communicators_) {
            nccl_wait(communicator, "ncclCommInitRankConfig", end);
        }
    }

    Clock::duration limit_;
    std::vector<ncclComm_t> communicators_;  // each used by its own worker
};

class NcclChannel final : public Channel {
public:
    NcclChannel(NcclTransport& transport, int devices, std::vector<std::int64_t> received)
        : transport_(transport), received_bytes_(std::move(received)), received_(static_cast<std::size_t>(devices))
    {
    }

    void open(engine::Worker& worker)
    {
        const auto rank = static_cast<std::size_t>(worker.rank());
        if (!received_bytes_.empty()) {
            received_[rank] = kernels::DeviceArray<std::byte>(
                worker.device(), static_cast<std::size_t>(bytes_of_received(received_bytes_[rank], received_.size())));
        }
    }
    void close(int rank) noexcept override { received_[static_cast<std::size_t>(rank)].reset(); }

    void gather(engine::Worker& worker, engine::Stream& stream, engine::Rendezvous& meeting, const Gather& gather,
                const std::function<void()>& write) override
    {
        const int rank = worker.rank();
        const ncclComm_t communicator = transport_.communicator(rank);
        auto* const queue = static_cast<cudaStream_t>(stream.native());
        write();
        gather.pack(worker, stream);
        // A rank that failed before this point would leave the others inside the collective for ever.
        meeting.arrive_and_wait();
        if (everything(gather)) {
            const Range slice = gather.part(rank, rank);
            nccl_check(nccl().ncclAllGather(gather.place(rank, slice.first), gather.place(rank, 0), gather.bytes(slice),
                                            ncclChar, communicator, queue),
                       "ncclAllGather");
            transport_.wait(rank, "ncclAllGather");
            return;
        }
        nccl_check(nccl().ncclGroupStart(), "ncclGroupStart");
        for (int other = 0; other < gather.devices(); ++other) {
            if (other == rank) {
                continue;
            }
            const Transfer out = gather.transfer(rank, other);
            if (!out.empty()) {
                nccl_check(nccl().ncclSend(out.from, out.bytes, ncclChar, other, communicator, queue), "ncclSend");
            }
            const Transfer in = gather.transfer(other, rank);
            if (!in.empty()) {
                nccl_check(nccl().ncclRecv(in.to, in.bytes, ncclChar, other, communicator, queue), "ncclRecv");
            }
        }
        nccl_check(nccl().ncclGroupEnd(), "ncclGroupEnd");
        transport_.wait(rank, "ncclSend and ncclRecv");
    }

    // A stream's own sends are done before what follows them.
    void settle(engine::Worker&, engine::Stream&, engine::Rendezvous&) override {}

    void reduce_scatter(engine::Worker& worker, engine::Rendezvous& meeting, const Reduce& reduce) override
    {
        const int rank = worker.rank();
        const ncclComm_t communicator = transport_.communicator(rank);
        auto* const stream = static_cast<cudaStream_t>(worker.stream().native());
        std::byte* const received = received_[static_cast<std::size_t>(rank)].data();
        const Range own = reduce.slice(rank);
        meeting.arrive_and_wait();
        if (!reduce.in_order && everything(reduce)) {
            // NCCL adds in an order of its own.
            nccl_check(
                nccl().ncclReduceScatter(reduce.place(rank, 0), received, static_cast<std::size_t>(own.end - own.first),
                                         reduce.entry_bytes == sizeof(double) ? ncclDouble : ncclFloat, ncclSum,
                                         communicator, stream),
                "ncclReduceScatter");
            transport_.wait(rank, "ncclReduceScatter");
            const Sums total{received - reduce.offset(own.first), own};
            Reduce rest = reduce;
            rest.beta = reduce.in_place(rank) ? 0 : reduce.beta;
            add_sums(worker, rest, {&total, 1});
            return;
        }
        std::vector<Sums> sums;
        std::size_t used = 0;
        nccl_check(nccl().ncclGroupStart(), "ncclGroupStart");
        for (int other = 0; other < reduce.devices(); ++other) {
            const Range in = reduce.part(other, rank);
            if (other == rank) {
                if (!reduce.in_place(rank)) {
                    sums.push_back({reduce.place(rank, 0), in});
                }
                continue;
            }
            const Range out = reduce.part(rank, other);
            if (!out.empty()) {
                nccl_check(nccl().ncclSend(reduce.place(rank, out.first), reduce.bytes(out), ncclChar, other,
                                           communicator, stream),
                           "ncclSend");
            }
            if (!in.empty()) {
                nccl_check(nccl().ncclRecv(received + used, reduce.bytes(in), ncclChar, other, communicator, stream),
                           "ncclRecv");
                sums.push_back({received + used - reduce.offset(in.first), in});
                used += (reduce.bytes(in) + line - 1) / line * line;
            }
        }
        nccl_check(nccl().ncclGroupEnd(), "ncclGroupEnd");
        transport_.wait(rank, "ncclSend and ncclRecv");
        add_sums(worker, reduce, sums);
    }

private:
    /// Whether all slices are equal and everyone has sums of all of them.
    static bool everything(const Reduce& reduce)
    {
        const std::int64_t slice = reduce.slices[1] - reduce.slices[0];
        for (int i = 0; i < reduce.devices(); ++i) {
            if (reduce.slice(i).end - reduce.slice(i).first != slice ||
                reduce.touched[static_cast<std::size_t>(i)] != Range{0, reduce.slices.back()}) {
                return false;
            }
        }
        return slice > 0;
    }

    /// Whether all slices are equal and everyone needs all of them: what NCCL has its own collective for.
    static bool everything(const Gather& gather)
    {
        if (gather.halo != nullptr || !gather.held.empty()) {
            return false;
        }
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
    std::vector<std::int64_t> received_bytes_;
    std::vector<kernels::DeviceArray<std::byte>> received_;  ///< of each device: what comes from the others
};

std::unique_ptr<Channel> NcclTransport::make_channel(int devices, std::int64_t, std::vector<std::int64_t> received)
{
    return std::make_unique<NcclChannel>(*this, devices, std::move(received));
}

void NcclTransport::open(Channel& channel, engine::Worker& worker) { dynamic_cast<NcclChannel&>(channel).open(worker); }

}  // namespace

std::unique_ptr<Transport> connect_nccl_transport(std::span<const std::unique_ptr<engine::Worker>> workers,
                                                  const ConnectOptions& options)
{
    const std::vector<int> ordinals = ordinals_of(workers);
    if (engine::share_gpus(ordinals)) {
        throw Error(ErrorCode::device, fmt::format("NCCL takes each GPU once; the {} devices are GPUs {}",
                                                   ordinals.size(), fmt::join(ordinals, ",")));
    }
    return std::make_unique<NcclTransport>(ordinals, options.limit);
}

}  // namespace rmsp::transport

#endif
