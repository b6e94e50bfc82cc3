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
    NcclLink(int ordinal, const DeviceLinkOptions& options) : ordinal_(ordinal), wait_(options.wait)
    {
        const DeviceGuard guard(ordinal_);
        ncclUniqueId id;
        if (options.id.size() != sizeof(id)) {
            throw Error(ErrorCode::usage,
                        fmt::format("an id of {} bytes, it must have {}", options.id.size(), sizeof(id)));
        }
        std::memcpy(&id, options.id.data(), sizeof(id));
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        ncclComm_t first = nullptr;
        try {
            for (cudaEvent_t& event : done_) {
                cuda_check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
            }
            nccl_check(nccl().ncclCommInitRankConfig(&first, options.size, id, options.rank, &config),
                       "ncclCommInitRankConfig");
            wait_for_nccl(first, "ncclCommInitRankConfig");
            ncclConfig_t of_calls = NCCL_CONFIG_INITIALIZER;
            of_calls.blocking = 1;
            nccl_check(nccl().ncclCommSplit(first, 0, options.rank, &communicator_, &of_calls), "ncclCommSplit");
            wait_for_nccl(first, "ncclCommSplit");
            abort(first);
        } catch (...) {
            abort(first);
            close();
            throw;
        }
    }
    ~NcclLink() override { close(); }
    NcclLink(const NcclLink&) = delete;
    NcclLink& operator=(const NcclLink&) = delete;

    void begin(void* stream, std::span<const GhostNeighbour> to, const void* send, std::span<const GhostNeighbour> from,
               void* receive, std::size_t entry_bytes) override
    {
        const DeviceGuard guard(ordinal_);
        auto* const queue = static_cast<cudaStream_t>(stream);
        const auto bytes = [&](std::int64_t entries) { return static_cast<std::size_t>(entries) * entry_bytes; };
        or_give_up([&] {
            make_room();
            if (!to.empty() || !from.empty()) {
                nccl_check(nccl().ncclGroupStart(), "ncclGroupStart");
                ncclResult_t status = ncclSuccess;
                const auto note = [&](ncclResult_t of_call) {
                    status = status == ncclSuccess || status == ncclInProgress ? of_call : status;
                };
                for (const GhostNeighbour& other : from) {
                    note(nccl().ncclRecv(static_cast<std::byte*>(receive) + bytes(other.first), bytes(other.count),
                                         ncclChar, other.process, communicator_, queue));
                }
                for (const GhostNeighbour& other : to) {
                    note(nccl().ncclSend(static_cast<const std::byte*>(send) + bytes(other.first), bytes(other.count),
                                         ncclChar, other.process, communicator_, queue));
                }
                note(nccl().ncclGroupEnd());
                until_queued(status, "ncclSend and ncclRecv");
            }
            begun(queue);
        });
    }

    void end() override
    {
        const DeviceGuard guard(ordinal_);
        or_give_up([&] { wait_until_done(begun_); });
    }

    void gather(void* stream, const void* own, void* all, std::size_t bytes) override
    {
        const DeviceGuard guard(ordinal_);
        auto* const queue = static_cast<cudaStream_t>(stream);
        or_give_up([&] {
            make_room();
            until_queued(nccl().ncclAllGather(own, all, bytes, ncclChar, communicator_, queue), "ncclAllGather");
            begun(queue);
        });
    }

    void copy(void* stream, void* to, const void* from, std::size_t bytes) override
    {
        const DeviceGuard guard(ordinal_);
        auto* const queue = static_cast<cudaStream_t>(stream);
        cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue), "cudaMemcpyAsync");
        cuda_check(cudaStreamSynchronize(queue), "cudaStreamSynchronize");
    }

    void give_up() noexcept override
    {
        if (communicator_ != nullptr) {
            const DeviceGuard guard(ordinal_);
            abort(communicator_);
        }
    }
    bool usable() const noexcept override { return communicator_ != nullptr; }

    /// From now on calls wait by that function; empty: for ever.
    void wait_with(std::function<void(const std::function<bool()>&, const char*)> wait) { wait_ = std::move(wait); }

private:
    /// So much may be begun that is not done, at most. What would be queued behind more might fill the GPU's queue,
    /// where the host waits and does not look whether a process is lost.
    static constexpr std::uint64_t most_under_way = 16;

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
        const DeviceGuard guard(ordinal_);
        for (cudaEvent_t& event : done_) {
            if (event != nullptr) {
                (void)cudaEventDestroy(std::exchange(event, nullptr));
            }
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
    /// NCCL_COMM_BLOCKING=0 in the environment makes all communicators such that a call is on the stream later.
    void until_queued(ncclResult_t status, const char* call) const
    {
        nccl_check(status, call);
        if (status == ncclInProgress) {
            wait_for_nccl(communicator_, call);
        }
    }
    void begun(cudaStream_t queue)
    {
        cuda_check(cudaEventRecord(done_[begun_ % most_under_way], queue), "cudaEventRecord");
        ++begun_;
    }
    void make_room() { wait_until_done(begun_ - std::min(begun_, most_under_way - 1)); }
    /// The first ones of all that was begun.
    void wait_until_done(std::uint64_t count)
    {
        wait_for(
            [&] {
                check_communicator(communicator_, "what NCCL brings");
                while (ended_ < count && is_done(done_[ended_ % most_under_way])) {
                    ++ended_;
                }
                return ended_ >= count;
            },
            "what goes from GPU to GPU");
    }
    static bool is_done(cudaEvent_t event)
    {
        const cudaError_t status = cudaEventQuery(event);
        if (status != cudaErrorNotReady) {
            cuda_check(status, "what NCCL brings");
        }
        return status == cudaSuccess;
    }

    const int ordinal_;
    std::function<void(const std::function<bool()>&, const char*)> wait_;
    ncclComm_t communicator_ = nullptr;
    std::array<cudaEvent_t, most_under_way> done_{};  ///< in turn
    std::uint64_t begun_ = 0;
    std::uint64_t ended_ = 0;  ///< of those that were begun, the first ones
};

/// Memory and a stream of the current GPU, for a test.
struct TestRoom {
    explicit TestRoom(std::size_t bytes)
    {
        cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
        cuda_check(cudaMalloc(&memory, bytes), "cudaMalloc");
    }
    ~TestRoom()
    {
        (void)cudaFree(memory);
        if (stream != nullptr) {
            (void)cudaStreamDestroy(stream);
        }
    }
    TestRoom(const TestRoom&) = delete;
    TestRoom& operator=(const TestRoom&) = delete;

    void* memory = nullptr;
    cudaStream_t stream = nullptr;
};

std::byte test_byte(int from, int to, std::size_t at)
{
    return static_cast<std::byte>(31 * from + 17 * to + static_cast<int>(at % 251) + static_cast<int>(at / 251 % 7));
}

/// Messages of so many bytes between each two processes. \throws Error(device) if others arrive than were sent
void test_messages(NcclLink& link, int rank, int size, std::int64_t bytes)
{
    const auto length = static_cast<std::size_t>(bytes);
    const std::size_t half = static_cast<std::size_t>(size) * length;
    const TestRoom room(2 * half);
    std::vector<std::byte> host(2 * half);
    std::vector<GhostNeighbour> others;
    for (int other = 0; other < size; ++other) {
        if (other == rank && size > 1) {
            continue;
        }
        others.push_back({other, other * bytes, bytes});
        for (std::size_t i = 0; i < length; ++i) {
            host[static_cast<std::size_t>(other) * length + i] = test_byte(rank, other, i);
        }
    }
    auto* const there = static_cast<std::byte*>(room.memory);
    link.copy(room.stream, there, host.data(), host.size());
    link.begin(room.stream, others, there, others, there + half, 1);
    link.end();
    link.copy(room.stream, host.data(), there, host.size());
    for (const GhostNeighbour& other : others) {
        const std::byte* const came = host.data() + half + static_cast<std::size_t>(other.first);
        for (std::size_t i = 0; i < length; ++i) {
            if (came[i] != test_byte(other.process, rank, i)) {
                throw Error(ErrorCode::device, fmt::format("NCCL brought wrong data from process {}: byte {} of {}",
                                                           other.process, i, length));
            }
        }
    }
}

/// A few numbers of each process. \throws Error(device) if others arrive than were sent
void test_gathering(NcclLink& link, int rank, int size)
{
    constexpr std::size_t length = 64;
    const TestRoom room(static_cast<std::size_t>(size + 1) * length);
    auto* const there = static_cast<std::byte*>(room.memory);
    std::vector<std::byte> own(length);
    for (std::size_t i = 0; i < length; ++i) {
        own[i] = test_byte(rank, 0, i);
    }
    std::vector<std::byte> all(static_cast<std::size_t>(size) * length);
    link.copy(room.stream, there, own.data(), length);
    link.gather(room.stream, there, there + length, length);
    link.end();
    link.copy(room.stream, all.data(), there + length, all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        const int from = static_cast<int>(i / length);
        if (all[i] != test_byte(from, 0, i % length)) {
            throw Error(ErrorCode::device, fmt::format("NCCL gathered wrong data from process {}", from));
        }
    }
}

/// The first calls of a communicator connect it, and block as long as other processes do not come. They are made on a
/// thread of their own, which is left behind where they are not to be waited for any longer.
struct Connecting {
    std::atomic<bool> ended{false};
    std::atomic<bool> left{false};
    std::exception_ptr error;
};

/// \throws Error(device), what DeviceLinkOptions::wait throws
void test_link(const std::shared_ptr<NcclLink>& link, int ordinal, const DeviceLinkOptions& options)
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
    std::thread tests([state, link, ordinal, rank = options.rank, size = options.size] {
        try {
            const DeviceGuard guard(ordinal);
            constexpr std::int64_t short_message = 48;
            constexpr std::int64_t long_message = std::int64_t{1} << 20;
            constexpr std::int64_t all_messages = std::int64_t{64} << 20;
            for (const std::int64_t bytes : {short_message, std::min(long_message, all_messages / size)}) {
                test_messages(*link, rank, size, bytes);
            }
            test_gathering(*link, rank, size);
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

std::shared_ptr<DeviceLink> connect_nccl_link(int ordinal, const DeviceLinkOptions& options)
{
    auto link = std::make_shared<NcclLink>(ordinal, options);
    test_link(link, ordinal, options);
    return link;
}

}  // namespace rmsp::transport

#endif
