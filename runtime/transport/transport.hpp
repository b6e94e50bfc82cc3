#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine/device.hpp"
#include "runtime/engine/job.hpp"
#include "runtime/engine/rendezvous.hpp"
#include "runtime/engine/worker.hpp"
#include "runtime/transport/halo.hpp"

namespace rmsp::transport {

/// Entries [first, end) of a vector.
struct Range {
    std::int64_t first = 0;
    std::int64_t end = 0;
    bool empty() const noexcept { return end <= first; }
    bool operator==(const Range&) const = default;
};
/// The least range that holds both.
inline Range hull(const Range& a, const Range& b) noexcept
{
    return a.empty() ? b : b.empty() ? a : Range{std::min(a.first, b.first), std::max(a.end, b.end)};
}

/// Bytes that go from one device to another.
struct Transfer {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::size_t bytes = 0;
    bool empty() const noexcept { return bytes == 0; }
};

/// Who holds what of a vector, and who needs what: ranges of entries, or with `halo` single ones, which their owners
/// have packed.
struct Gather {
    std::span<void* const>
        buffers;  ///< each device's copy, entry 0; with `halo` only its slice and what follows are there
    std::span<const std::int64_t> slices;  ///< device i holds entries [slices[i], slices[i + 1])
    std::span<const Range> needed;         ///< of each device; not with `halo`
    std::size_t entry_bytes = 0;
    const Halo* halo = nullptr;
    std::span<void* const>
        packed{};                 ///< each device's buffer for what the others need; this and the rest with `halo` only
    const void* slice = nullptr;  ///< the calling worker's slice, which may be elsewhere than in its copy
    const std::int32_t* packed_list = nullptr;  ///< its Halo::packed()
    /// Where each device's slice is, as its entry 0 would be, if it is not in the device's copy; nor is it then moved
    /// there.
    std::span<void* const> held{};
    /// So much, or beside work that needs the multiprocessors, that copy engines should move it; with `halo` once it
    /// has been packed. Ranges need not be aligned alike. The same on all devices.
    bool large = false;

    /// Packs what the others need into the worker's buffer, for channels that do not move entries one by one.
    void pack(engine::Worker& worker, engine::Stream& stream) const;
    Transfer transfer(int from, int to) const noexcept
    {
        if (halo != nullptr) {
            return {at(packed, from, halo->sent_at(from, to)),
                    at(buffers, to, slices[static_cast<std::size_t>(to)] + halo->received_at(from, to)),
                    static_cast<std::size_t>(halo->count(from, to)) * entry_bytes};
        }
        const Range range = part(from, to);
        return {at(held.empty() ? buffers : held, from, range.first), at(buffers, to, range.first), bytes(range)};
    }
    /// The smallest range of a device's memory that holds all that others need of it.
    std::span<const std::byte> sent(int from) const noexcept
    {
        const std::byte* first = nullptr;
        const std::byte* end = nullptr;
        for (int to = 0; to < devices(); ++to) {
            const Transfer out = transfer(from, to);
            if (to != from && !out.empty()) {
                first = first == nullptr ? out.from : std::min(first, out.from);
                end = std::max(end, out.from + out.bytes);
            }
        }
        return {first, end};
    }

    int devices() const noexcept { return static_cast<int>(buffers.size()); }
    /// What `to` needs of the slice of `from`.
    Range part(int from, int to) const noexcept
    {
        const Range& range = needed[static_cast<std::size_t>(to)];
        const auto f = static_cast<std::size_t>(from);
        return {std::max(range.first, slices[f]), std::min(range.end, slices[f + 1])};
    }
    std::byte* place(int device, std::int64_t entry) const noexcept { return at(buffers, device, entry); }
    std::size_t bytes(const Range& range) const noexcept
    {
        return range.empty() ? 0 : static_cast<std::size_t>(range.end - range.first) * entry_bytes;
    }
    std::byte* at(std::span<void* const> places, int device, std::int64_t entry) const noexcept
    {
        // Entry 0 need not be in the array, of which there may be nothing: counted in bytes.
        return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(places[static_cast<std::size_t>(device)]) +
                                            static_cast<std::uintptr_t>(entry) * entry_bytes);
    }
};

/// One device's sums of entries in `range`.
struct Sums {
    const void* entry_zero = nullptr;
    Range range;
};

/// A vector that is the sum of what the devices found, and who is to hold what of it.
struct Reduce {
    std::span<void* const> partials;       ///< each device's sums: where entry 0 is, or would be
    std::span<const Range> touched;        ///< entries that each device has sums of
    std::span<const std::int64_t> slices;  ///< device i gets entries [slices[i], slices[i + 1])
    std::size_t entry_bytes = 0;           ///< 8: double, 4: float
    void* y = nullptr;  ///< where the calling worker's slice goes: entry 0 of it. May be its sums, which then stay
    double beta = 0;    ///< what y is multiplied by before the sums are added
    bool in_order =
        false;  ///< the sums are added in the order of the devices, so that the same call gives the same bits

    int devices() const noexcept { return static_cast<int>(partials.size()); }
    /// Whether a device's sums are in y.
    bool in_place(int device) const noexcept { return partials[static_cast<std::size_t>(device)] == y; }
    Range slice(int device) const noexcept
    {
        return {slices[static_cast<std::size_t>(device)], slices[static_cast<std::size_t>(device) + 1]};
    }
    /// What `from` has of the slice of `to`.
    Range part(int from, int to) const noexcept
    {
        const Range& range = touched[static_cast<std::size_t>(from)];
        return {std::max(range.first, slice(to).first), std::min(range.end, slice(to).end)};
    }
    /// What is added to the slice of `to`, in the order of the devices, where all can read all sums.
    std::vector<Sums> sums(int to) const
    {
        std::vector<Sums> all;
        for (int from = 0; from < devices(); ++from) {
            if (from != to || !in_place(to)) {
                all.push_back({place(from, 0), part(from, to)});
            }
        }
        return all;
    }
    const std::byte* place(int device, std::int64_t entry) const noexcept
    {
        return static_cast<const std::byte*>(partials[static_cast<std::size_t>(device)]) + offset(entry);
    }
    std::ptrdiff_t offset(std::int64_t entry) const noexcept
    {
        return static_cast<std::ptrdiff_t>(entry) * static_cast<std::ptrdiff_t>(entry_bytes);
    }
    std::size_t bytes(const Range& range) const noexcept
    {
        return range.empty() ? 0 : static_cast<std::size_t>(range.end - range.first) * entry_bytes;
    }
};

/// Queues y = beta y + the sums, in their order, for the calling worker's slice.
void add_sums(engine::Worker& worker, const Reduce& reduce, std::span<const Sums> sums);

/// Per-matrix memory and events of a transport, made when the matrix is distributed so that applies allocate nothing.
class Channel {
public:
    virtual ~Channel() = default;

    /// Each device holds a slice of its own copy of a vector; afterwards each also holds the entries that it needs.
    /// Queued on `stream`, one of the worker's. Every worker of the job calls it, with the same gather. In `write` the
    /// caller queues what puts the worker's own slice in place, if it is not there yet.
    virtual void gather(engine::Worker& worker, engine::Stream& stream, engine::Rendezvous& meeting,
                        const Gather& gather, const std::function<void()>& write) = 0;
    /// Ends the gather, or the reduction: what a worker queues on the same stream afterwards may overwrite its slice,
    /// or its sums. Best called after the work that needs the gathered entries has been queued; the waiting then costs
    /// nothing.
    virtual void settle(engine::Worker& worker, engine::Stream& stream, engine::Rendezvous& meeting) = 0;
    /// Each device has sums of some entries of a vector; afterwards each holds y = beta y + the total for its slice.
    /// Queued on the worker's stream, which settle() is to be given; every worker of the job calls it, with its own `y`
    /// and otherwise the same.
    virtual void reduce_scatter(engine::Worker& worker, engine::Rendezvous& meeting, const Reduce& reduce) = 0;
    /// Frees what open() made for one device; on its worker, or after all workers have stopped.
    virtual void close(int rank) noexcept = 0;
};

// An epoch is the number of a job and, below it, which of the waits of that job it is: all devices count alike, also
// past jobs that failed on some of them.
inline constexpr unsigned epoch_bits = 16;
constexpr std::uint64_t epoch_of(std::uint64_t job, std::uint64_t wait) { return (job << epoch_bits) + wait; }
/// Waits of one job in which a device's kernels may wait for those of others, for each of the things that count them.
inline constexpr std::int64_t most_waits = (std::int64_t{1} << epoch_bits) - 2;

/// Words that say which jobs failed: kernels stop waiting where the one of their own job has reached their epoch. Those
/// of other jobs go on, since what they wait for is still to come. So many jobs later a word is used again: no device
/// is ever so far behind another, which could not have that many kernels and events queued.
inline constexpr std::uint64_t given_up_words = 4096;
constexpr std::uint64_t given_up_word(std::uint64_t epoch) { return (epoch >> epoch_bits) % given_up_words; }

/// A way to move data between the devices of a runtime.
class Transport {
public:
    virtual ~Transport() = default;
    virtual std::string name() const = 0;
    /// A channel for gathers, of which `bytes` bytes a device may be under way at once, and for reductions of sums of
    /// at most `bytes` a device in which device i gets at most received[i] bytes from the others (empty: no
    /// reductions). Its open parts are made on the workers.
    virtual std::unique_ptr<Channel> make_channel(int devices, std::int64_t bytes,
                                                  std::vector<std::int64_t> received = {}) = 0;
    /// What open() takes of the memory of a device, for a channel that make_channel(devices, bytes) makes; `received`:
    /// bytes that the device gets in reductions, null: there are none. By any thread.
    virtual std::int64_t channel_bytes(int devices, std::int64_t bytes, const std::int64_t* received) const
    {
        (void)devices, (void)bytes, (void)received;
        return 0;
    }
    /// Makes what one device needs of a channel; on its worker, before the first gather.
    virtual void open(Channel& channel, engine::Worker& worker) = 0;
    /// Lets channels move what the worker's device has in pools (Device::make_pool), from now on; on the worker.
    virtual void open_pool(engine::Worker&) {}
    /// Memory is short: gives back what is kept of one device for later channels, and keeps nothing more of it. On its
    /// worker, once all devices are done with what was queued before: others write there.
    virtual void give_back_spares(int rank) noexcept { (void)rank; }
    /// Host memory that all devices read, given_up_words words: kernels that wait for those of other devices, through
    /// words in memory that peers write, stop waiting in epochs up to what given_up_word() has of theirs. Null: kernels
    /// cannot wait for each other, or cannot write each other's memory.
    virtual const volatile std::uint64_t* given_up() const noexcept { return nullptr; }
    /// Gives up what one device has under way, so that its stream does not wait for the others any more; the transport
    /// is of no further use. On the device's worker.
    virtual void abort(int rank) noexcept { (void)rank; }
    /// A device failed in that job of the queue that uses the channels: devices that wait for it in that job stop
    /// waiting. Any thread.
    virtual void give_up(std::uint64_t /*job*/) noexcept {}
};

}  // namespace rmsp::transport
