#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <rmsp/export.hpp>
#include <rmsp/ghosted.hpp>
#include <rmsp/runtime.hpp>

/// Entries that processes bring each other from the memory of a GPU to that of another one, by NCCL: what a
/// GhostExchange with on_device() may be made of. What else processes say to each other is the caller's, as in
/// <rmsp/ghosted.hpp>.
namespace rmsp {

/// The first GPUs of some processes. All of them make the same calls in the same order; calls of one thread at a time,
/// on any thread, whose current device they leave as it is. What is begun is done in that order: a call on another
/// stream than the one before comes behind that one there, by an event.
class DeviceLink {
public:
    virtual ~DeviceLink() = default;
    /// Starts an exchange behind what is queued on a stream of the GPU (cudaStream_t): entries of `send` go to
    /// processes, others come into `receive`, both in memory of the GPU. What is queued there later finds them.
    /// Several entries of the lists for the same process are in their order. Waits for none of this, unless much that
    /// was begun before is not done. \throws what DeviceLinkOptions::wait throws, Error(device); the link is then given
    /// up
    virtual void begin(void* stream, std::span<const GhostNeighbour> to, const void* send,
                       std::span<const GhostNeighbour> from, void* receive, std::size_t entry_bytes) = 0;
    /// Returns when all that this process has begun, or gathers, is done. To be called before the host waits for the
    /// GPU in another way, which would not see that a process is lost. \throws as begin()
    virtual void end() = 0;
    /// Starts to bring bytes of every process to all, in turn, behind what is queued on a stream of the GPU. What is
    /// queued there later finds them. \throws as begin()
    virtual void gather(void* stream, const void* own, void* all, std::size_t bytes) = 0;
    /// Copies from or to host memory behind what is queued on a stream of the GPU, also once the link is given up.
    /// Blocks. \throws Error(device)
    virtual void copy(void* stream, void* to, const void* from, std::size_t bytes) = 0;
    /// Ends what goes on, and all that would come: for the others to be told by other means.
    virtual void give_up() noexcept = 0;
    virtual bool usable() const noexcept = 0;
};

struct DeviceLinkOptions {
    int rank = 0;  ///< of this process
    int size = 1;  ///< how many they are
    /// make_device_link_id() of one of them.
    std::vector<std::byte> id;
    /// Returns when done(), which it calls again and again, returns true; throws where it is not to be waited for any
    /// longer, as what done() throws. Empty: waits for ever.
    std::function<void(const std::function<bool()>& done, const char* what)> wait{};
};

/// Why the first device of a runtime cannot be linked; empty: it may be.
[[nodiscard]] RMSP_API std::string why_no_device_link(const Runtime& runtime);
/// "2.28.3": of the NCCL that a link would use. \throws Error(usage) where why_no_device_link() says why
[[nodiscard]] RMSP_API std::string device_link_version();
/// What tells the processes of a link from those of others. \throws as device_link_version(), Error(device)
[[nodiscard]] RMSP_API std::vector<std::byte> make_device_link_id();
/// Connects the first GPUs of the processes, no two of which are the same one, and tests them with data: short and long
/// messages between each two. Collective. Blocks. \throws Error(device) if they cannot be connected, or data arrive
/// that were not sent; Error(usage) where why_no_device_link() says why; what `wait` throws
[[nodiscard]] RMSP_API std::shared_ptr<DeviceLink> connect_device_link(const Runtime& runtime,
                                                                       const DeviceLinkOptions& options);

}  // namespace rmsp
