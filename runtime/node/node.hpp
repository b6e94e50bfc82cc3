#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <numa/pages.hpp>
#include <rmsp/runtime.hpp>

#include "core/device_kind.hpp"
#include "runtime/engine/cache.hpp"
#include "runtime/engine/caller_memory.hpp"
#include "runtime/engine/job_queue.hpp"
#include "runtime/engine/locked_array.hpp"
#include "runtime/engine/memory_ledger.hpp"
#include "runtime/engine/worker.hpp"
#include "runtime/transport/connect.hpp"
#include "runtime/transport/transport.hpp"

namespace rmsp::distributed {
class DotSlots;
}  // namespace rmsp::distributed

namespace rmsp::detail {

/// The node's devices with their workers, and what connects them: what a runtime's handle points to.
struct RuntimeState {
    ~RuntimeState();

    int process = 0;  ///< that opened this
    RuntimeOptions options;
    Topology topology;
    std::vector<DeviceInfo> infos;                         ///< limit_gbs under `mutex`
    std::unique_ptr<engine::MemoryLedger> memory;          ///< of the devices; null: as there are no workers
    std::vector<std::unique_ptr<engine::Worker>> workers;  ///< empty: a described machine, plans only
    transport::Connection connection;
    std::unique_ptr<engine::JobQueue> jobs;
    std::vector<std::unique_ptr<transport::Link>> others;  ///< connected on demand; under `connecting` and `mutex`
    std::atomic<bool> link_failed{false};                  ///< one of them, or the connection's, may want a replacement
    std::mutex connecting;
    engine::LockedArrays locked;  ///< of streamed matrices
    engine::CallerOrders caller_orders;
    numa::MovePages move_pages = numa::system_move_pages;
    std::vector<std::string> notes;
    engine::Cache cache;
    std::vector<MachineLink> links;  ///< what joins the devices in use and their nodes, as far as known
    std::vector<double>
        link_gbs;  ///< copies from the host to each device, all at once; empty until measured; under `mutex`
    bool limits_recalled = false;  ///< the read bandwidths are another process's; under `mutex`
    /// Of the host's memory, what is read at most to measure its bandwidth, and to evict what caches hold. Where only
    /// that is looked at which is done with the figures, less is enough than what gives true ones.
    std::int64_t most_host_bytes_read = std::numeric_limits<std::int64_t>::max();
    std::once_flag dot_slots_made;
    std::shared_ptr<distributed::DotSlots> dot_slots;  ///< made for the first dot product
    /// What matrices' entries go through from device to device, one matrix after the other; opened on demand, under
    /// `opening_entries`.
    std::map<const transport::Transport*, std::shared_ptr<transport::Channel>> entry_channels;
    std::mutex opening_entries;
    mutable std::mutex mutex;

    std::mutex replacing;                     ///< held while `successor` is made
    std::shared_ptr<RuntimeState> successor;  ///< of the devices that are left, once some were lost; under `mutex`

    int devices() const { return static_cast<int>(infos.size()); }
    bool shared_memory() const { return infos.empty() || core::shares_host_memory(infos.front().kind); }
    /// What bounds an apply on each device in GB/s as far as it is known, else 0: the bandwidth of its memory, or of
    /// the link over which a GPU is streamed to.
    std::vector<double> limits(Mode mode) const;
    /// \throws Error(usage) on a described machine, and in another process than the one that opened this
    void require_live() const;
    /// Not in a process that fork() made: the workers' threads are not there, and their locks may be held for ever.
    bool in_own_process() const noexcept;
    /// The transport of that name, connected now if it is not. On the caller's thread, not a worker's.
    /// \throws Error(device) if it does not connect the devices
    transport::Transport& transport(const std::string& name);
    /// What the connection uses now, or "shared", "none", "unknown".
    std::string transport_name() const;
    /// Why, and what it took the place of.
    std::string transport_reason() const;
    /// Whether a device's pool is as good as its other memory for what others read or write: channels that reach it
    /// share it.
    bool peers_reach_pools() const;
    /// A job failed: devices that wait for others in it stop waiting.
    void give_up(std::uint64_t job) noexcept;
    /// A job stands still: where it is for want of data, what carries them is given up. Returns what is told of that.
    /// \throws std::bad_alloc
    std::string stalled(const void* carrier);
    /// As JobQueue::submit(). What the body allocates is taken from what the calling thread's Placing was promised.
    std::future<void> submit(engine::Job::Body body, std::function<void()> finish = {}, bool host_data = false);
    std::future<void> submit(engine::Job::Body body, std::function<void()> finish, const engine::JobTerms& terms);
    /// Memory of each device for something that is going to be placed, on the terms of the calling thread's JobScope,
    /// for a Placing; null: it is part of what the thread is placing, which is promised more where it has to be.
    /// \throws as MemoryLedger::admit()
    std::shared_ptr<engine::Reservation> admit(const std::string& what, std::span<const std::int64_t> bytes);
    /// Runs f(), which frees memory and must not throw, once, on the worker of a device behind everything submitted so
    /// far, or here if the workers have stopped. `room` has a task for it, which is used up: who has something to free
    /// makes one for each device beforehand, as this is for destructors and allocates nothing.
    template <class F>
    void release(int rank, engine::Tasks& room, F f) noexcept
    {
        room.front().run.set([f = std::move(f)](engine::Worker&) mutable { f(); });
        post_or_run(rank, room);
    }
    /// Finishes the accepted jobs and ends the threads; false, and these stay, where workers may never end what they
    /// are at (JobQueue::abandoned()).
    bool stop() noexcept;
    /// Waits until what was let go before, by any thread that has told this one, is free; what transports keep of it
    /// for later channels, too, and they keep nothing more.
    void catch_up();

private:
    /// Links whose transport failed go over to the next one, before a job is submitted.
    void replace_failed_links();
    void post_or_run(int rank, engine::Tasks& room) noexcept;
};

/// Ends a runtime in the process that opened it. In one that fork() made it is left where it is: what it holds waits
/// for threads that are not there, and CUDA's own locks may be held for ever. Left as well is one whose workers do not
/// end: they use it.
struct CloseRuntime {
    void operator()(RuntimeState* state) const noexcept
    {
        if (state->in_own_process() && state->stop()) {
            delete state;
        }
    }
};
using OpenRuntime = std::unique_ptr<RuntimeState, CloseRuntime>;

/// What the handle points to.
/// \throws Error(usage) for one that is empty: made by the default constructor, or moved from
const std::shared_ptr<RuntimeState>& checked(const std::shared_ptr<RuntimeState>& state);

/// checked(), or what took its place when devices were lost.
std::shared_ptr<RuntimeState> current(const std::shared_ptr<RuntimeState>& state);

/// What a runtime's handle points to, current().
struct RuntimeAccess {
    static std::shared_ptr<RuntimeState> state(const Runtime& runtime) { return current(runtime.state_); }
};

}  // namespace rmsp::detail

namespace rmsp::node {

using detail::RuntimeState;

/// Reads the topology, then starts and binds the workers and opens their devices, if it is the live one's; connects
/// nothing. \throws as Runtime's constructor
detail::OpenRuntime open_devices(const RuntimeOptions& options);

/// The options with which a runtime has those of this one's devices that are not lost.
/// \throws Error(device) if there are none
RuntimeOptions without_lost(const RuntimeState& runtime);

/// Room for what kernels::read_all() writes.
inline constexpr std::int64_t read_sink_entries = 4096;

/// This machine and the devices in use, as text: for the names of files in the cache.
std::string machine_key(const RuntimeState& runtime);

/// Where the cache has the read bandwidths of these devices.
std::string limits_cache_name(const RuntimeState& runtime);

/// The read bandwidths, of which those that RuntimeState::limits() does not know yet are read from the cache, or else
/// measured and kept there.
std::vector<double> measure_limits(RuntimeState& runtime);

}  // namespace rmsp::node
