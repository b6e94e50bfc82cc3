#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include <kernels/context.hpp>
#include <rmsp/runtime.hpp>

#include "core/device_kind.hpp"
#include "runtime/engine/memory_ledger.hpp"

namespace rmsp::engine {

/// A point in a stream. Made by Device::make_event(); may be recorded again and again.
class Event {
public:
    virtual ~Event() = default;
    /// Whether everything before the last record() is done; true if never recorded.
    /// \throws Error(device) if that work failed
    virtual bool ready() const = 0;
    /// Blocks until ready().
    virtual void synchronize() const = 0;
    /// Time between two recorded events of the same device, both made with timing and both ready.
    virtual double seconds_since(const Event& earlier) const = 0;
};

/// An in-order queue of work on one device. Every function returns at once on a GPU; on a host device the work has then
/// been done.
class Stream {
public:
    virtual ~Stream() = default;
    /// Copies between any two places that both devices of the copy can reach: device, pinned host, or a peer's memory.
    virtual void copy(void* dst, const void* src, std::size_t bytes) = 0;
    virtual void record(Event& event) = 0;
    /// Later work of this stream starts after `event`, which may belong to another device. The event must have been
    /// recorded before this call (see HandOver).
    virtual void wait(const Event& event) = 0;
    virtual void synchronize() = 0;
    /// cudaStream_t of a GPU, null on host devices.
    virtual void* native() const = 0;
    /// A list of launches on this stream, which it must not outlive. Null: there is nothing to be saved by one.
    virtual std::unique_ptr<kernels::LaunchList> make_launch_list() { return nullptr; }
};

/// Whose kernels start first where several wait for room on the device.
enum class StreamPriority : std::uint8_t { normal, high };

/// Writes bytes [begin, begin + bytes) of what is uploaded to `out`; called from several threads for disjoint ranges
/// whose ends are multiples of 64 bytes.
using Filler = std::function<void(std::byte* out, std::size_t begin, std::size_t bytes)>;

/// Called between the parts of an upload of pageable memory, for work that uses the link while the cores prepare the
/// next one. Copies only what is pinned.
using Between = std::function<void()>;

/// Writes 64-bit indices as 32-bit ones, counted from `base`; the caller has checked the range.
inline Filler narrowed(const std::int64_t* from, std::int64_t base = 0)
{
    return [from, base](std::byte* out, std::size_t begin, std::size_t bytes) {
        auto* const narrow = reinterpret_cast<std::int32_t*>(out);
        const std::int64_t* const wide = from + begin / sizeof(std::int32_t);
        for (std::size_t i = 0; i < bytes / sizeof(std::int32_t); ++i) {
            narrow[i] = static_cast<std::int32_t>(wide[i] - base);
        }
    };
}

/// Writes each double as the nearest float is as a double.
inline Filler rounded_to_float(const double* from)
{
    return [from](std::byte* out, std::size_t begin, std::size_t bytes) {
        auto* const rounded = reinterpret_cast<double*>(out);
        const double* const values = from + begin / sizeof(double);
        for (std::size_t i = 0; i < bytes / sizeof(double); ++i) {
            rounded[i] = static_cast<double>(static_cast<float>(values[i]));
        }
    };
}

/// Writes the local row pointers of nnz nonzeros from `start` on, clamp(row_ptr[i] - start, 0, nnz): what
/// kernels::localize_row_ptr() does on a device.
template <class In, class Out>
Filler localized(const In* row_ptr, std::int64_t start, std::int64_t nnz, const Out* /*type*/)
{
    return [row_ptr, start, nnz](std::byte* out, std::size_t begin, std::size_t bytes) {
        auto* const local = reinterpret_cast<Out*>(out);
        const In* const global = row_ptr + begin / sizeof(Out);
        for (std::size_t i = 0; i < bytes / sizeof(Out); ++i) {
            local[i] = static_cast<Out>(std::clamp<std::int64_t>(std::int64_t{global[i]} - start, 0, nnz));
        }
    };
}

/// Bytes on their way to host memory.
struct Download {
    void* to = nullptr;
    const void* from = nullptr;
    std::size_t bytes = 0;
    const Event* after = nullptr;  ///< has been recorded; null: after what is in the stream
};

/// Memory, streams and events of one place. A device belongs to one Worker, whose thread calls everything here, except
/// that deallocate() and make_current() may also be called by another thread once the worker has stopped, and
/// everything by one that has the worker's place (Worker::try_take_place()).
class Device : public kernels::Memory {
public:
    explicit Device(DeviceInfo info) : info_(std::move(info)) {}
    const DeviceInfo& info() const noexcept { return info_; }
    /// True if host code may read and write this device's memory, and this device the host's (host devices).
    bool shares_host_memory() const noexcept { return core::shares_host_memory(info_.kind); }

    /// Whether the device failed in a way from which it does not recover: nothing is to be queued on it any more. Asked
    /// by any thread, as are loss() and require().
    bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }
    /// "cuda:1 NVIDIA H200 is lost: ..."; empty if it is not.
    std::string loss() const;
    /// \throws Error(device) with loss() if the device is lost
    void require() const;
    /// Counts the device as lost from now on, by any thread; tests use it. The first reason stays.
    void lose(const std::string& why);
    /// What to tell of an error that came up in the device's work: that it is lost, if it now is; else the error
    /// itself.
    std::exception_ptr explain(std::exception_ptr error) noexcept;

    /// What a ledger is to know of this device, which outlives it.
    LedgerDevice for_ledger();
    /// What is allocated from now on is counted there, as device `number`. Before the worker has anything to do.
    void count_in(MemoryLedger& ledger, int number) noexcept;
    /// In the worker's place: of whose promised memory that is to be taken; null: nobody's.
    void draw_from(Reservation* from) noexcept { draws_from_ = from; }
    /// \throws Error(out_of_memory) naming bytes and device
    void* allocate(std::size_t bytes) final;
    void deallocate(void* p, std::size_t bytes) noexcept final;
    /// Memory of this device that is handed out and taken back in the order of `stream`: nothing waits, and what is
    /// freed serves the next request. The pool behind it lives as long as the device. Peers reach it only after
    /// Transport::open_pool().
    std::unique_ptr<kernels::Memory> make_pool(Stream& stream);
    /// Bytes that one may allocate to whom none were promised; 0: not known.
    std::int64_t room() const { return ledger_ == nullptr ? 0 : ledger_->room(number_); }

    /// Makes this device the calling thread's current one.
    virtual void make_current() = 0;
    /// Makes it current on a thread that gets back what it had, by leave() with what this returns.
    virtual int visit() noexcept { return 0; }
    virtual void leave(int /*had*/) noexcept {}
    virtual std::unique_ptr<Stream> make_stream(StreamPriority priority) = 0;
    virtual std::unique_ptr<Event> make_event(bool timing) = 0;

    /// Bytes that the device has left, whoever uses it; 0: not known. By any thread.
    virtual std::int64_t free_bytes() = 0;

    /// Host memory near this device that every device of the runtime can reach directly.
    /// \throws Error(out_of_memory) naming bytes and device
    void* allocate_pinned(std::size_t bytes);
    virtual void free_pinned(void* p, std::size_t bytes) noexcept = 0;

    /// Whether every device of the runtime can reach this memory of the host directly.
    virtual bool is_pinned(const void* p, std::size_t bytes) const = 0;
    /// Makes whole pages of the caller's memory so; false if the system refuses (a limit on locked memory, a read-only
    /// mapping). unpin() takes what pin() took and may be called by any thread, but not before the copies have ended.
    virtual bool pin(void* p, std::size_t bytes) = 0;
    virtual void unpin(void* p) noexcept = 0;

    /// Copies host memory of any kind to the device; src may be reused when this returns, unless it is pinned (then
    /// when the stream gets there). Pageable memory goes through a pinned, node-local ring filled by the worker's
    /// cores.
    virtual void upload(Stream& stream, void* dst, const void* src, std::size_t bytes, const Between& between = {}) = 0;
    /// Uploads data that is made on the way (converted columns): `fill` has been called for everything when this
    /// returns.
    virtual void upload(Stream& stream, void* dst, std::size_t bytes, const Filler& fill,
                        const Between& between = {}) = 0;
    /// Copies device memory to host memory of any kind, in this order, each as soon as it is there. If any of it is
    /// pageable, returns when all the data are there; else when queued.
    virtual void download(Stream& stream, std::span<const Download> parts) = 0;
    void download(Stream& stream, void* dst, const void* src, std::size_t bytes)
    {
        const Download whole{dst, src, bytes};
        download(stream, {&whole, 1});
    }

    kernels::Context context(const Stream& stream)
    {
        kernels::Context c;
        c.kind = info_.kind;
        c.stream = stream.native();
        // The host's share of a GPU's work is short loops, for which a larger team takes longer to wake than it saves.
        constexpr int most_beside_a_gpu = 16;
        c.threads = shares_host_memory()
                        ? info_.compute_units
                        : std::clamp(static_cast<int>(info_.placement.cpus.size()), 1, most_beside_a_gpu);
        c.compute_units = info_.compute_units;
        c.memory = this;
        return c;
    }

protected:
    /// Why nothing can be done on the device any more; empty if it works. On its worker's thread.
    virtual std::string fault() { return {}; }
    /// The device is lost: keeps what is to be known of that when it is gone. By any thread, more than once.
    virtual void remember_loss() {}
    /// allocate(), deallocate() and make_pool() without the count.
    virtual void* obtain(std::size_t bytes) = 0;
    virtual void give_back(void* p, std::size_t bytes) noexcept = 0;
    virtual std::unique_ptr<kernels::Memory> make_uncounted_pool(Stream& stream) = 0;
    virtual void* obtain_pinned(std::size_t bytes) = 0;

private:
    class CountedPool;
    template <class Obtain>
    void* counted(std::size_t bytes, const Obtain& obtain);
    void count_as_free(std::size_t bytes) noexcept;

    DeviceInfo info_;
    MemoryLedger* ledger_ = nullptr;
    int number_ = 0;
    Reservation* draws_from_ = nullptr;
    std::atomic<bool> lost_{false};
    mutable std::mutex losing_;
    std::string loss_;
};

/// "host:1 (4 threads)", "cuda:0 NVIDIA H200".
std::string label_of(const DeviceInfo& info);

/// Pinned memory of a device, owned.
class PinnedBuffer {
public:
    PinnedBuffer() = default;
    PinnedBuffer(Device& device, std::size_t bytes)
        : device_(&device), bytes_(bytes), data_(bytes > 0 ? device.allocate_pinned(bytes) : nullptr)
    {
    }
    PinnedBuffer(PinnedBuffer&& other) noexcept
        : device_(other.device_), bytes_(std::exchange(other.bytes_, 0)), data_(std::exchange(other.data_, nullptr))
    {
    }
    PinnedBuffer& operator=(PinnedBuffer&& other) noexcept
    {
        std::swap(device_, other.device_);
        std::swap(bytes_, other.bytes_);
        std::swap(data_, other.data_);
        return *this;
    }
    ~PinnedBuffer()
    {
        if (data_ != nullptr) {
            device_->free_pinned(data_, bytes_);
        }
    }
    void* data() const noexcept { return data_; }
    std::size_t bytes() const noexcept { return bytes_; }

private:
    Device* device_ = nullptr;
    std::size_t bytes_ = 0;
    void* data_ = nullptr;
};

}  // namespace rmsp::engine
