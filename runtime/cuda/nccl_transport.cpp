#include <vector>

#include <fmt/format.h>

#include "runtime/cuda/cuda_backend.hpp"
#include "runtime/cuda/cuda_device.hpp"

#ifdef RMSP_HAVE_NCCL
#include <nccl.h>

namespace rmsp::runtime {
namespace {

void nccl_check(ncclResult_t status, const char* call)
{
    if (status != ncclSuccess) {
        throw Error(ErrorCode::device,
                    fmt::format("{}: {} ({})", call, ncclGetErrorString(status), ncclGetLastError(nullptr)));
    }
}

class NcclTransport final : public Transport {
public:
    explicit NcclTransport(const std::vector<int>& ordinals) : communicators_(ordinals.size(), nullptr)
    {
        // All communicators at once on this thread: lazy initialisation inside the workers can hang.
        nccl_check(ncclCommInitAll(communicators_.data(), static_cast<int>(ordinals.size()), ordinals.data()),
                   "ncclCommInitAll");
    }
    ~NcclTransport() override
    {
        for (const ncclComm_t communicator : communicators_) {
            (void)ncclCommDestroy(communicator);
        }
    }
    NcclTransport(const NcclTransport&) = delete;
    NcclTransport& operator=(const NcclTransport&) = delete;

    std::string name() const override { return "nccl"; }
    std::unique_ptr<Channel> make_channel(int devices, std::int64_t bytes) override;
    void open(Channel&, Worker&) override {}

    ncclComm_t communicator(int rank) const { return communicators_[static_cast<std::size_t>(rank)]; }

private:
    std::vector<ncclComm_t> communicators_;
};

class NcclChannel final : public Channel {
public:
    explicit NcclChannel(const NcclTransport& transport) : transport_(transport) {}

    void close(int) noexcept override {}

    void gather(Worker& worker, Stream& stream, Rendezvous& meeting, const Gather& gather,
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
            nccl_check(ncclAllGather(gather.place(rank, slice.first), gather.place(rank, 0), gather.bytes(slice),
                                     ncclChar, communicator, queue),
                       "ncclAllGather");
            return;
        }
        nccl_check(ncclGroupStart(), "ncclGroupStart");
        for (int other = 0; other < gather.devices(); ++other) {
            if (other == rank) {
                continue;
            }
            const Transfer out = gather.transfer(rank, other);
            if (!out.empty()) {
                nccl_check(ncclSend(out.from, out.bytes, ncclChar, other, communicator, queue), "ncclSend");
            }
            const Transfer in = gather.transfer(other, rank);
            if (!in.empty()) {
                nccl_check(ncclRecv(in.to, in.bytes, ncclChar, other, communicator, queue), "ncclRecv");
            }
        }
        nccl_check(ncclGroupEnd(), "ncclGroupEnd");
    }

    // A stream's own sends are done before what follows them.
    void settle(Worker&, Stream&, Rendezvous&) override {}

private:
    /// Whether all slices are equal and everyone needs all of them: what NCCL has its own collective for.
    static bool everything(const Gather& gather)
    {
        if (gather.halo != nullptr) {
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

    const NcclTransport& transport_;
};

std::unique_ptr<Channel> NcclTransport::make_channel(int, std::int64_t) { return std::make_unique<NcclChannel>(*this); }

}  // namespace

std::unique_ptr<Transport> make_nccl_transport(std::span<const std::unique_ptr<Worker>> workers)
{
    std::vector<int> ordinals;
    for (const auto& worker : workers) {
        ordinals.push_back(dynamic_cast<CudaDevice&>(worker->device()).ordinal());
    }
    return std::make_unique<NcclTransport>(ordinals);
}

}  // namespace rmsp::runtime

#else

namespace rmsp::runtime {

std::unique_ptr<Transport> make_nccl_transport(std::span<const std::unique_ptr<Worker>>)
{
    throw NotCompiled("the NCCL transport");
}

}  // namespace rmsp::runtime

#endif
