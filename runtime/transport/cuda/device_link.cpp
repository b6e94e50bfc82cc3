#include "runtime/transport/cuda/device_link.hpp"

#ifdef RMSP_HAVE_NCCL

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "runtime/engine/cuda/cuda_check.hpp"
#include "runtime/engine/cuda/device_guard.hpp"
#include "runtime/engine/cuda/nccl.hpp"
#include "runtime/transport/cuda/nccl_check.hpp"

namespace rmsp::transport {
namespace {

using engine::cuda_check;
using engine::DeviceGuard;
using engine::nccl;

/// Made by a communicator that does not block, so that whoever waits may look for other things meanwhile, and end the
/// waiting. The one that is used blocks: the other kind starts a thread for each call, which takes longer than what the
/// call is for. Once its first calls have connected it (test_link()), it only queues.
class NcclLink final : public DeviceLink {
public:
    NcclLink(const std::vector<int>& ordinals, const DeviceLinkOptions& options)
        : devices_(cuda_device_access(ordinals)), ends_(ordinals.size()), wait_(options.wait)
    {
        ncclUniqueId id;
        if (options.id.size() != sizeof(id)) {
            throw Error(ErrorCode::usage,
                        fmt::format("an id of {} bytes, it must have {}", options.id.size(), sizeof(id)));
        }
        std::memcpy(&id, options.id.data(), sizeof(id));
        for (std::size_t i = 0; i < ends_.size(); ++i) {
            ends_[i].ordinal = ordinals[i];
        }
        std::vector<ncclComm_t> first(ends_.size());
        try {
            connect(options, id, first);
        } catch (...) {
            abort_all(first);
            close();
            throw;
        }
        abort_all(first);
    }
    ~NcclLink() override { close(); }
    NcclLink(const NcclLink&) = delete;
    NcclLink& operator=(const NcclLink&) = delete;

    void begin(std::span<const DeviceArrays> devices, std::span<const LinkMessages> to,
               std::span<const LinkMessages> from, std::size_t entry_bytes) override
    {
        const auto bytes = [&](std::int64_t entries) { return static_cast<std::size_t>(entries) * entry_bytes; };
        or_give_up([&] {
            make_room();
            queue_all("ncclSend and ncclRecv", [&](std::size_t i, const auto& call) {
                const DeviceArrays& arrays = devices[i];
                auto* const queue = static_cast<cudaStream_t>(arrays.stream);
                for (const LinkMessage& other : from[i]) {
                    call(nccl().ncclRecv(static_cast<std::byte*>(arrays.to) + bytes(other.first), bytes(other.count),
                                         ncclChar, other.gpu, ends_[i].communicator, queue));
                }
                for (const LinkMessage& other : to[i]) {
                    call(nccl().ncclSend(static_cast<const std::byte*>(arrays.from) + bytes(other.first),
                                         bytes(other.count), ncclChar, other.gpu, ends_[i].communicator, queue));
                }
            });
            begun(devices);
        });
    }

    void end() override
    {
        or_give_up([&] { wait_until_done(begun_); });
    }

    void gather(std::span<const DeviceArrays> devices, std::size_t bytes) override
    {
        or_give_up([&] {
            make_room();
            queue_all("ncclAllGather", [&](std::size_t i, const auto& call) {
                call(nccl().ncclAllGather(devices[i].from, devices[i].to, bytes, ncclChar, ends_[i].communicator,
                                          static_cast<cudaStream_t>(devices[i].stream)));
            });
            begun(devices);
        });
    }

    void copy(int device, void* stream, void* to, const void* from, std::size_t bytes) override
    {
        devices_->copy(device, stream, to, from, bytes);
    }

    void give_up() noexcept override
    {
        for (End& end : ends_) {
            if (end.communicator != nullptr) {
                const DeviceGuard guard(end.ordinal);
                abort(end.communicator);
            }
        }
    }
    bool usable() const noexcept override { return ends_.front().communicator != nullptr; }

    /// From now on calls wait by that function; empty: for ever.
    void wait_with(std::function<void(const std::function<bool()>&, const char*)> wait) { wait_ = std::move(wait); }

private:
    /// So much may be begun that is not done, at most. What would be queued behind more might fill a GPU's queue, where
    /// the host waits and does not look whether a process is lost.
    static constexpr std::uint64_t most_under_way = 16;

    struct End {
        int ordinal = 0;
        ncclComm_t communicator = nullptr;
        std::array<cudaEvent_t, most_under_way> done{};  ///< in turn
    };

    void connect(const DeviceLinkOptions& options, const ncclUniqueId& id, std::vector<ncclComm_t>& first)
    {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        ncclConfig_t of_calls = NCCL_CONFIG_INITIALIZER;
        of_calls.blocking = 1;
        // All of them first: each is made once the others are being made as well.
        for (std::size_t i = 0; i < ends_.size(); ++i) {
            const DeviceGuard guard(ends_[i].ordinal);
            for (cudaEvent_t& event : ends_[i].done) {
                cuda_check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
            }
            nccl_check(nccl().ncclCommInitRankConfig(&first[i], options.size, id, options.first + static_cast<int>(i),
                                                     &config),
                       "ncclCommInitRankConfig");
        }
        for (const ncclComm_t communicator : first) {
            wait_for_nccl(communicator, "ncclCommInitRankConfig");
        }
        for (std::size_t i = 0; i < ends_.size(); ++i) {
            const DeviceGuard guard(ends_[i].ordinal);
            nccl_check(nccl().ncclCommSplit(first[i], 0, options.first + static_cast<int>(i), &ends_[i].communicator,
                                            &of_calls),
                       "ncclCommSplit");
        }
        for (const ncclComm_t communicator : first) {
            wait_for_nccl(communicator, "ncclCommSplit");
        }
    }
    template <class F>
    void or_give_up(const F& f)
    {
        if (!usable()) {
            throw Error(ErrorCode::device, "NCCL between the processes was given up after an error");
        }
        try {
            f();
        } catch (...) {
            give_up();
            throw;
        }
    }
    void close() noexcept
    {
        give_up();
        for (End& end : ends_) {
            const DeviceGuard guard(end.ordinal);
            for (cudaEvent_t& event : end.done) {
                if (event != nullptr) {
                    (void)cudaEventDestroy(std::exchange(event, nullptr));
                }
            }
        }
    }
    void abort_all(std::vector<ncclComm_t>& communicators) const noexcept
    {
        for (std::size_t i = 0; i < communicators.size(); ++i) {
            const DeviceGuard guard(ends_[i].ordinal);
            abort(communicators[i]);
        }
    }
    static void abort(ncclComm_t& communicator) noexcept
    {
        if (communicator != nullptr) {
            (void)nccl().ncclCommAbort(std::exchange(communicator, nullptr));
            (void)cudaGetLastError();
        }
    }
    void wait_for(const std::function<bool()>& done, const char* what) const
    {
        if (wait_) {
            wait_(done, what);
            return;
        }
        while (!done()) {
            std::this_thread::yield();
        }
    }
    /// Returns what a communicator is at. \throws Error(device) if it has failed
    static ncclResult_t check_communicator(ncclComm_t communicator, const char* call)
    {
        ncclResult_t status = ncclInProgress;
        nccl_check(nccl().ncclCommGetAsyncError(communicator, &status), "ncclCommGetAsyncError");
        nccl_check(status, call);
        return status;
    }
    void wait_for_nccl(ncclComm_t communicator, const char* call) const
    {
        wait_for([&] { return check_communicator(communicator, call) == ncclSuccess; }, call);
    }
    /// What f(number of a GPU, what each call's result goes to) calls for all of them, as one: one thread would wait
    /// for itself otherwise.
    template <class F>
    void queue_all(const char* calls, const F& f) const
    {
        nccl_check(nccl().ncclGroupStart(), "ncclGroupStart");
        ncclResult_t status = ncclSuccess;
        const auto note = [&](ncclResult_t of_call) {
            status = status == ncclSuccess || status == ncclInProgress ? of_call : status;
        };
        for (std::size_t i = 0; i < ends_.size(); ++i) {
            f(i, note);
        }
        note(nccl().ncclGroupEnd());
        nccl_check(status, calls);
        // NCCL_COMM_BLOCKING=0 in the environment makes all communicators such that a call is on the stream later.
        for (std::size_t i = 0; status == ncclInProgress && i < ends_.size(); ++i) {
            wait_for_nccl(ends_[i].communicator, calls);
        }
    }
    void begun(std::span<const DeviceArrays> devices)
    {
        for (std::size_t i = 0; i < ends_.size(); ++i) {
            const DeviceGuard guard(ends_[i].ordinal);
            cuda_check(
                cudaEventRecord(ends_[i].done[begun_ % most_under_way], static_cast<cudaStream_t>(devices[i].stream)),
                "cudaEventRecord");
        }
        ++begun_;
    }
    void make_room() { wait_until_done(begun_ - std::min(begun_, most_under_way - 1)); }
    /// The first ones of all that was begun.
    void wait_until_done(std::uint64_t count)
    {
        wait_for(
            [&] {
                for (const End& end : ends_) {
                    check_communicator(end.communicator, "what NCCL brings");
                }
                const auto is_done = [&](const End& end) { return has_ended(end.done[ended_ % most_under_way]); };
                while (ended_ < count && std::all_of(ends_.begin(), ends_.end(), is_done)) {
                    ++ended_;
                }
                return ended_ >= count;
            },
            "what goes from GPU to GPU");
    }
    static bool has_ended(cudaEvent_t event)
    {
        const cudaError_t status = cudaEventQuery(event);
        if (status != cudaErrorNotReady) {
            cuda_check(status, "what NCCL brings");
        }
        return status == cudaSuccess;
    }

    const std::shared_ptr<DeviceAccess> devices_;
    std::vector<End> ends_;  ///< of each GPU here
    std::function<void(const std::function<bool()>&, const char*)> wait_;
    std::uint64_t begun_ = 0;
    std::uint64_t ended_ = 0;  ///< of those that were begun, the first ones
};

/// The first calls of a communicator connect it, and block as long as other processes do not come. They are made on a
/// thread of their own, which is left behind where they are not to be waited for any longer.
struct Connecting {
    std::atomic<bool> ended{false};
    std::atomic<bool> left{false};
    std::exception_ptr error;
};

/// \throws Error(device), what DeviceLinkOptions::wait throws
void test_link(const std::shared_ptr<NcclLink>& link, const std::vector<int>& ordinals,
               const DeviceLinkOptions& options)
{
    const auto state = std::make_shared<Connecting>();
    link->wait_with([state](const std::function<bool()>& done, const char* what) {
        while (!done()) {
            if (state->left) {
                throw Error(ErrorCode::device, fmt::format("{} is not waited for any longer", what));
            }
            std::this_thread::yield();
        }
    });
    std::thread tests([state, link, ordinals, options] {
        try {
            test_device_link(*link, *cuda_device_access(ordinals),
                             {.first = options.first, .size = options.size, .name = "NCCL"});
        } catch (...) {
            state->error = std::current_exception();
        }
        state->ended = true;
    });
    try {
        const auto ended = [&] { return state->ended.load(); };
        if (options.wait) {
            options.wait(ended, "NCCL's first messages");
        }
    } catch (...) {
        state->left = true;
        tests.detach();
        throw;
    }
    tests.join();
    if (state->error) {
        std::rethrow_exception(state->error);
    }
    link->wait_with(options.wait);
}

}  // namespace

std::string nccl_link_version() { return engine::nccl_version(); }

std::vector<std::byte> make_nccl_link_id()
{
    ncclUniqueId id;
    nccl_check(nccl().ncclGetUniqueId(&id), "ncclGetUniqueId");
    std::vector<std::byte> bytes(sizeof(id));
    std::memcpy(bytes.data(), &id, sizeof(id));
    return bytes;
}

std::shared_ptr<DeviceLink> connect_nccl_link(const std::vector<int>& ordinals, const DeviceLinkOptions& options)
{
    auto link = std::make_shared<NcclLink>(ordinals, options);
    test_link(link, ordinals, options);
    return link;
}

}  // namespace rmsp::transport

#endif
