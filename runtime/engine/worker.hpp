#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/engine/device.hpp"
#include "runtime/engine/task.hpp"

namespace rmsp::engine {

/// The pinned thread of one device and its in-order queue. Tasks put work on the device's stream and return; their
/// Task::done is called when the stream gets there, while later tasks are already being queued.
class Worker {
public:
    using DeviceFactory = std::function<std::unique_ptr<Device>()>;

    /// Starts the thread, binds it as placed, then makes the device and its stream on it; returns at once.
    /// \throws Error(out_of_memory) if the thread cannot be started
    Worker(int rank, const Placement& placement, DeviceFactory factory);
    /// Stops as stop() does.
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    /// Waits until the device is open. \throws what opening it threw; the thread has then ended
    void wait_until_open();
    /// Appends the first task of `tasks`, which must not be empty, taking it from there. Allocates nothing. Returns
    /// false if the worker has been stopped; the task then stays where it is.
    bool post(Tasks& tasks) noexcept;
    /// post() of a task made here.
    template <class F>
    requires std::is_invocable_v<F, Worker&>
    bool post(F f)
    {
        Tasks one(1);
        one.front().run.set(std::move(f));
        return post(one);
    }
    /// Whether the calling thread may run a task in the place of this worker's, which holds no task now: it then has
    /// to, by perform_here(), and what is posted meanwhile comes after. Waits for nothing. False for devices of the
    /// host, whose tasks do the work themselves, once stopped, and where others are before it.
    bool try_take_place() noexcept;
    /// Runs the first of the tasks, taking it from there, and gives the place back. Its Task::done is called on the
    /// worker's thread.
    void perform_here(Tasks& tasks) noexcept;
    /// Finishes the tasks accepted so far, then ends the thread. Idempotent.
    void stop() noexcept;

    int rank() const noexcept { return rank_; }
    Device& device() noexcept { return *device_; }

    // For tasks, in the worker's place:
    /// Has first launched what the tasks before kept (see launching_context()), as has context().
    Stream& stream()
    {
        launch_kept();
        return *stream_;
    }
    /// Its memory is a pool in the order of stream(): nothing waits for the device when it is taken or given back.
    kernels::Context context()
    {
        launch_kept();
        return make_context();
    }
    /// context() for a task that queues nothing but kernels by cuda::launch_early() with it: these may be kept until
    /// the tasks behind it have run.
    kernels::Context launching_context()
    {
        if (!keeps_launches_) {
            return context();
        }
        kernels::Context c = make_context();
        c.launches = launches_.get();
        return c;
    }
    /// A second queue of the device, whose kernels go first where both wait for room. What is queued on it must end
    /// before the end of the task on stream(), through events. Made at the first call.
    Stream& side_stream();
    /// stream() becomes what side_stream() is, and the other way round. The pool stays in the order of the first one:
    /// meanwhile memory of context() is the device's.
    void swap_streams()
    {
        side_stream();
        std::swap(stream_, side_stream_);
        streams_swapped_ = !streams_swapped_;
    }
    /// Waits for the Task::done of all tasks that have run. On the worker's thread.
    void drain() noexcept;

private:
    kernels::Context make_context()
    {
        kernels::Context c = device_->context(*stream_);
        if (!streams_swapped_) {
            c.memory = pool_.get();
        }
        return c;
    }
    /// Launches what the tasks before this one left to be launched. \throws Error(device), which is also told to them
    void launch_kept();
    void run(const Placement& placement, const DeviceFactory& factory);
    void loop() noexcept;
    /// Runs the oldest task, if there is one.
    void perform_next() noexcept;
    /// Runs the one task of the list, and keeps it in pending_ until its work is done. `more`: other tasks follow,
    /// which may tell its end as well.
    void perform(Tasks& one, bool more) noexcept;
    /// Runs the task, which may keep what it launches if `keeps`.
    void run_task(Task& task, bool keeps) noexcept;
    /// The task, the last one, has ended when the stream gets here.
    void mark_end(Task& task) noexcept;
    /// It and those that share its end are told an error of what they queued.
    void end_with_error(Task& task, std::exception_ptr error) noexcept;
    /// Returns when there is a task, or shortly after.
    void stay_awake() const;
    /// The oldest task, with those that tell their ends together; false: it is not done.
    bool complete_oldest(bool block) noexcept;
    std::unique_ptr<Event> take_event();

    const int rank_;
    std::unique_ptr<Device> device_;
    std::unique_ptr<Stream> stream_;
    std::unique_ptr<kernels::Memory> pool_;
    std::unique_ptr<kernels::LaunchList> launches_;  ///< on stream_; empty unless sharing_ > 0
    bool keeps_launches_ = false;
    std::unique_ptr<Stream> side_stream_;
    bool streams_swapped_ = false;
    std::promise<void> open_;

    /// Of the thread that runs a task: the worker's, or one that took its place. Before mutex_.
    std::mutex place_;
    std::mutex mutex_;
    std::condition_variable changed_;
    Tasks tasks_;
    std::atomic<bool> waiting_{false};  ///< whether there are tasks; written under mutex_
    bool stopping_ = false;
    Tasks pending_;                          ///< under mutex_; the worker's thread alone takes from it
    std::atomic<std::size_t> under_way_{0};  ///< how many; written under mutex_
    int in_a_row_ = 0;                       ///< tasks since the worker slept, on a device of the host
    int sharing_ = 0;                        ///< last ones of pending_ whose ends are not marked yet; under place_
    /// Free ones, under mutex_; has room for all that were made.
    std::vector<std::unique_ptr<Event>> events_;
    std::size_t events_made_ = 0;
    std::thread thread_;
};

/// While it lives, what is queued on the worker's stream() goes to its side stream.
class OnSideStream {
public:
    explicit OnSideStream(Worker& worker) : worker_(worker) { worker_.swap_streams(); }
    ~OnSideStream() { worker_.swap_streams(); }
    OnSideStream(const OnSideStream&) = delete;
    OnSideStream& operator=(const OnSideStream&) = delete;

private:
    Worker& worker_;
};

}  // namespace rmsp::engine
