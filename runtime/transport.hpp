#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/device.hpp"
#include "runtime/rendezvous.hpp"
#include "runtime/worker.hpp"

namespace rmsp::runtime {

/// Entries [first, end) of a vector.
struct Range {
    std::int64_t first = 0;
    std::int64_t end = 0;
    bool empty() const noexcept { return end <= first; }
    bool operator==(const Range&) const = default;
};

/// Who holds what of a vector, and who needs what.
struct Gather {
    std::span<void* const> buffers;        ///< each device's copy, entry 0
    std::span<const std::int64_t> slices;  ///< device i holds entries [slices[i], slices[i + 1])
    std::span<const Range> needed;         ///< of each device
    std::size_t entry_bytes = 0;

    int devices() const noexcept { return static_cast<int>(buffers.size()); }
    /// What `to` needs of the slice of `from`.
    Range part(int from, int to) const noexcept
    {
        const Range& range = needed[static_cast<std::size_t>(to)];
        const auto f = static_cast<std::size_t>(from);
        return {std::max(range.first, slices[f]), std::min(range.end, slices[f + 1])};
    }
    std::byte* place(int device, std::int64_t entry) const noexcept
    {
        return static_cast<std::byte*>(buffers[static_cast<std::size_t>(device)]) +
               static_cast<std::size_t>(entry) * entry_bytes;
    }
    std::size_t bytes(const Range& range) const noexcept
    {
        return range.empty() ? 0 : static_cast<std::size_t>(range.end - range.first) * entry_bytes;
    }
};

/// Per-matrix memory and events of a transport, made when the matrix is distributed so that applies allocate nothing.
class Channel {
public:
    virtual ~Channel() = default;

    /// Each device holds a slice of its own copy of a vector; afterwards each also holds the entries that it needs. Queued on
    /// `stream`, one of the worker's. Every worker of the job calls it, with the same gather. In `write` the caller queues what
    /// puts the worker's own slice in place, if it is not there yet.
    virtual void gather(Worker& worker, Stream& stream, Rendezvous& meeting, const Gather& gather,
                        const std::function<void()>& write) = 0;
    /// Ends the gather: what a worker queues on the same stream afterwards may overwrite its slice. Best called after the work
    /// that needs the gathered entries has been queued; the waiting then costs nothing.
    virtual void settle(Worker& worker, Stream& stream, Rendezvous& meeting) = 0;
    /// Frees what open() made for one device; on its worker, or after all workers have stopped.
    virtual void close(int rank) noexcept = 0;
};

/// A way to move data between the devices of a runtime.
class Transport {
public:
    virtual ~Transport() = default;
    virtual std::string name() const = 0;
    /// A channel for gathers of at most `bytes` bytes. The channel's open parts are made on the workers (see Channel users).
    virtual std::unique_ptr<Channel> make_channel(int devices, std::int64_t bytes) = 0;
    /// Makes what one device needs of a channel; on its worker, before the first gather.
    virtual void open(Channel& channel, Worker& worker) = 0;
    /// Gives up what one device has under way, so that its stream does not wait for the others any more; the transport is of
    /// no further use. On the device's worker.
    virtual void abort(int rank) noexcept { (void)rank; }
    /// A device failed in that job of the queue that uses the channels: devices that wait for it stop waiting. Any thread.
    virtual void give_up(std::uint64_t /*job*/) noexcept {}
};

/// How long NCCL, or the transfers of a test, may take before they count as hung.
inline constexpr std::chrono::seconds communication_limit{30};

/// Through pinned host memory: works between any devices.
std::unique_ptr<Transport> make_host_transport();

/// Names that configuration knows, in the default order: peer memory, NCCL, host copies.
std::span<const char* const> transport_names();

/// One of transport_names(). NCCL has `limit` for everything that it does.
/// \throws Error(device) if the devices cannot be connected that way, NotCompiled
std::unique_ptr<Transport> make_transport(const std::string& name, std::span<const std::unique_ptr<Worker>> workers,
                                          std::chrono::steady_clock::duration limit);

/// Waits for the worker's stream; false if it is not done after `limit`.
bool wait_for_stream(Worker& worker, std::chrono::steady_clock::duration limit);

/// Gathers a pattern and compares every byte on every device: a link that claims to work may still lose data.
/// \throws Error(device) naming the first devices between which it does, or if the data are not there after `limit`
void test_with_data(Transport& transport, std::span<const std::unique_ptr<Worker>> workers,
                    std::chrono::steady_clock::duration limit);

/// What an earlier self test found of a transport between the same devices (docs/doctor.md).
struct TestedTransport {
    std::string name;
    bool passed = false;
    std::string detail;  ///< why it did not; when it was tested
};

/// What connect() found: the first transport of the list that connected and moved data correctly.
struct Connection {
    std::unique_ptr<Transport> transport;  ///< null: none needed (one device, or devices that share host memory)
    std::string name;                      ///< "peer", "nccl", "host", "shared", "none"
    std::string reason;                    ///< why this one; what failed before it
};

/// Tries the transports in order; each must pass a test with data, on every pair of devices, before it is trusted. One that
/// `tested` says has passed is not tested again, and one that has not is not tried.
/// \throws Error(usage) for an unknown name, Error(device) if none of them works
Connection connect(std::span<const std::unique_ptr<Worker>> workers, const std::vector<std::string>& order,
                   std::span<const TestedTransport> tested = {});

}  // namespace rmsp::runtime
