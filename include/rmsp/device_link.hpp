#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <rmsp/export.hpp>
#include <rmsp/ghosted.hpp>
#include <rmsp/runtime.hpp>

/// Entries that processes bring each other from the memory of one GPU to that of another one, by NCCL or by a link of
/// the program's own: what a GhostExchange with on_devices() may be made of. What else processes say to each other is
/// the caller's, as in <rmsp/ghosted.hpp>.
namespace rmsp {

/// What a GPU exchanges with another one: [first, first + count) of its array.
struct LinkMessage {
    int gpu = 0;  ///< number of the other one in the link
    std::int64_t first = 0;
    std::int64_t count = 0;
};
using LinkMessages = std::vector<LinkMessage>;

/// The GPUs of some processes, numbered through: those of each process in turn. All processes make the same calls in
/// the same order; calls of one thread at a time, on any thread, whose current device they leave as it is. Spans have
/// an element for each GPU of this process. What is begun is done in that order: a call on another stream of a GPU than
/// the one before comes behind that one there, by an event.
class DeviceLink {
public:
    virtual ~DeviceLink() = default;
    /// Starts an exchange behind what is queued on a stream of each GPU: entries of DeviceArrays::from go to other
    /// GPUs, others come into DeviceArrays::to. What is queued there later finds them, or what is queued after end()
    /// (in_stream_order()). Several entries of the lists for the same GPU are in their order. Waits for none of this,
    /// unless much that was begun before is not done.
    /// \throws what DeviceLinkOptions::wait throws, Error(device); the link is then given up
    virtual void begin(std::span<const DeviceArrays> devices, std::span<const LinkMessages> to,
                       std::span<const LinkMessages> from, std::size_t entry_bytes) = 0;
    /// Returns when all that this process has begun, or gathers, is done. To be called before the host waits for a GPU
    /// in another way, which would not see that a process is lost. \throws as begin()
    virtual void end() = 0;
    /// Whether what is queued behind begin() and gather() finds what they bring. Always the same.
    virtual bool in_stream_order() const { return true; }
    /// Starts to bring bytes of every GPU to all, in turn, behind what is queued on a stream of each. What is queued
    /// there later finds them. Only of links that are in_stream_order(). \throws as begin()
    virtual void gather(std::span<const DeviceArrays> devices, std::size_t bytes) = 0;
    /// Copies from or to host memory behind what is queued on a stream of one GPU of this process, also once the link
    /// is given up. Blocks. \throws Error(device)
    virtual void copy(int device, void* stream, void* to, const void* from, std::size_t bytes) = 0;
    /// Ends what goes on, and all that would come: for the others to be told by other means.
    virtual void give_up() noexcept = 0;
    virtual bool usable() const noexcept = 0;
};

/// Entries as the GPUs of a process exchange them.
struct LinkedEntries {
    std::vector<std::int64_t> places;    ///< of each entry, in the array of its GPU
    std::vector<LinkMessages> messages;  ///< of each GPU here: parts of its array
};

/// Gives entries their places: in the array of each GPU those that it exchanges with one other GPU lie together, in
/// their order. Both sides of an exchange do so with the same entries in the same order.
/// \param here   number of each entry's GPU in this process, below `devices`
/// \param there  number, in the link, of the GPU that it comes from or goes to
[[nodiscard]] RMSP_API LinkedEntries place_entries(std::span<const int> here, std::span<const int> there, int devices);

/// The devices of a runtime, for a link of the program's own. They have the numbers of Runtime::devices(). Calls of one
/// thread at a time, on any thread, whose current device they leave as it is. May outlive the runtime.
class DeviceAccess {
public:
    virtual ~DeviceAccess() = default;
    virtual int devices() const = 0;
    /// DeviceLink::copy(). With no bytes: returns when what is queued on the stream is done.
    virtual void copy(int device, void* stream, void* to, const void* from, std::size_t bytes) = 0;
    /// Memory of a device, freed with its last owner. \throws Error(out_of_memory) naming bytes
    virtual std::shared_ptr<void> allocate(int device, std::size_t bytes) = 0;
    /// A stream that waits for no other one, ended with its last owner; null of a host device.
    virtual std::shared_ptr<void> make_stream(int device) = 0;
    /// f() with that device as the calling thread's current one. \throws what f() throws
    virtual void visit(int device, const std::function<void()>& f) = 0;
};

/// Of all devices of a runtime, on GPUs or on the host.
[[nodiscard]] RMSP_API std::shared_ptr<DeviceAccess> open_device_access(const Runtime& runtime);

/// What test_device_link() is to know of a link.
struct LinkTest {
    int first = 0;            ///< number of this process's first GPU
    int size = 1;             ///< how many GPUs all processes have
    bool own_gpus = true;     ///< messages between GPUs of the same process are tested as well
    std::string name = "it";  ///< of the link, in errors
};

/// Brings short and long messages from each GPU to each other one, and gathers a few bytes of all where the link is
/// in_stream_order(). Collective. Blocks. \throws Error(device) if data arrive that were not sent; what the link throws
RMSP_API void test_device_link(DeviceLink& link, DeviceAccess& devices, const LinkTest& test);

struct DeviceLinkOptions {
    int first = 0;  ///< number of this process's first GPU
    int size = 1;   ///< how many GPUs all processes have
    /// make_device_link_id() of one of them.
    std::vector<std::byte> id;
    /// Returns when done(), which it calls again and again, returns true; throws where it is not to be waited for any
    /// longer, as what done() throws. Empty: waits for ever.
    std::function<void(const std::function<bool()>& done, const char* what)> wait{};
};

/// Why the devices of a runtime cannot be linked; empty: they may be.
[[nodiscard]] RMSP_API std::string why_no_device_link(const Runtime& runtime);
/// "2.28.3": of the NCCL that a link would use. \throws Error(usage) where why_no_device_link() says why
[[nodiscard]] RMSP_API std::string device_link_version();
/// What tells the processes of a link from those of others. \throws as device_link_version(), Error(device)
[[nodiscard]] RMSP_API std::vector<std::byte> make_device_link_id();
/// Connects all GPUs of the processes, no two of which are the same one, and tests them with data: short and long
/// messages between each two. Collective. Blocks. \throws Error(device) if they cannot be connected, or data arrive
/// that were not sent; Error(usage) where why_no_device_link() says why; what `wait` throws
[[nodiscard]] RMSP_API std::shared_ptr<DeviceLink> connect_device_link(const Runtime& runtime,
                                                                       const DeviceLinkOptions& options);

}  // namespace rmsp
