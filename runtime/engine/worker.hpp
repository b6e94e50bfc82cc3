#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
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
    /// The same of a task made here.
    template <class F>
    requires std::is_invocable_v<F, Worker&>
    bool post(F f)
    {
        Tasks one(1);
        one.front().run.set(std::move(f));
        return post(one);
    }
    /// Whether the calling thread is to run a task itself, in the worker's place, which nobody else has then: no task
    /// waits, the device is open to callers, and it has little to do yet. In place of post(); run_in_place() follows.
    bool take_place() noexcept;
    /// Runs the first of the tasks, taking it from there, and gives the place back. What calls threads use as current
    /// device stays as it is. `run` of the task waits for nothing but the device's room for work.
    void run_in_place(Tasks& tasks) noexcept;
    /// Finishes the tasks accepted so far, then ends the thread. Idempotent.
    void stop() noexcept;

    int rank() const noexcept { return rank_; }
    Device& device() noexcept { return *device_; }

    // For tasks, on the worker's thread or in its place:
    Stream& stream() noexcept { return *stream_; }
    /// Its memory is a pool in the order of stream(): nothing waits for the device when it is taken or given back.
    kernels::Context context()
    {
        kernels::Context c = device_->context(*stream_);
        c.memory = pool_.get();
        return c;
    }
    /// A second queue of the device, whose kernels go first where both wait for room. What is queued on it must end
    /// before the end of the task on stream(), through events. Made at the first call.
    Stream& side_stream();
    /// Waits for the Task::done of all tasks that have run.
    void drain() noexcept;

private:
    void run(const Placement& placement, const DeviceFactory& factory);
    void loop() noexcept;
    /// Returns with the place, once there is something to do: a task in `one`, or to ask how far the device is. False:
    /// the thread is to end.
    bool wait_for_place(Tasks& one) noexcept;
    void leave_place() noexcept;

    // With the place:
    /// Runs the one task of the list, and keeps it in pending_ until its work is done.
    void perform(Tasks& one) noexcept;
    /// Records an event behind the tasks that have none. Where that fails they end with the error.
    void cover() noexcept;
    /// Now and then, where tasks follow each other: what complete() does.
    void complete_now_and_then() noexcept;
    /// Calls Task::done of the tasks that are done.
    void complete() noexcept;
    /// The same of the first event's tasks; false if they are not done. `block`: waits for them.
    bool complete_oldest(bool block) noexcept;
    void take_done(Tasks::iterator last, const std::exception_ptr& error) noexcept;

    const int rank_;
    std::unique_ptr<Device> device_;
    std::unique_ptr<Stream> stream_;
    std::unique_ptr<kernels::Memory> pool_;
    std::unique_ptr<Stream> side_stream_;
    std::promise<void> open_;

    /// Who runs tasks and asks how far the device is: nobody; the worker's thread, which only asks, for a microsecond;
    /// or a thread that is about something longer.
    enum class Place : std::uint8_t { free, asked, taken };

    std::mutex mutex_;
    std::condition_variable changed_;
    Tasks tasks_;
    // Apart: the worker's thread looks at the first while a caller writes the others.
    alignas(64) std::atomic<bool> waiting_{false};       ///< whether there are tasks; written under mutex_
    alignas(64) std::atomic<Place> place_{Place::free};  ///< taken and left under mutex_
    std::atomic<int> wanted_{0};                         ///< callers that wait for the place
    std::atomic<std::uint32_t> visits_{0};               ///< how often callers had it
    std::atomic<std::int64_t> in_flight_{0};             ///< tasks in pending_; written with the place
    bool asleep_ = false;                                ///< the thread is, and has to be woken
    bool stopping_ = false;
    bool open_to_callers_ = false;  ///< before the device is open

    // Of who has the place:
    Tasks pending_;      ///< have run; an event stands for the tasks before it as well
    int uncovered_ = 0;  ///< the last ones, which no event stands for yet
    double uncovered_seconds_ = 0;
    int unasked_ = 0;
    std::vector<std::unique_ptr<Event>> events_;  ///< free ones; has room for all that were made
    std::size_t events_made_ = 0;
    std::thread thread_;
};

}  // namespace rmsp::engine
