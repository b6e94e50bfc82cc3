#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/engine/device.hpp"

namespace rmsp::engine {

/// The pinned thread of one device and its in-order queue. Tasks put work on the device's stream and return; what they
/// registered with when_done() is called when the stream gets there, while later tasks are already being queued.
class Worker {
public:
    using Task = std::function<void(Worker&)>;
    using DeviceFactory = std::function<std::unique_ptr<Device>()>;

    /// Starts the thread, binds it as placed, then makes the device and its stream on it; returns at once.
    Worker(int rank, const Placement& placement, DeviceFactory factory);
    /// Stops as stop() does.
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    /// Waits until the device is open. \throws what opening it threw; the thread has then ended
    void wait_until_open();
    /// Appends a task. Returns false if the worker has been stopped; the task is then not kept.
    bool post(Task task);
    /// Finishes the tasks accepted so far, then ends the thread. Idempotent.
    void stop() noexcept;

    int rank() const noexcept { return rank_; }
    Device& device() noexcept { return *device_; }

    // For tasks, on the worker's thread:
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
    /// Calls `done` on this thread when everything queued so far on stream() has finished, with the error if it failed.
    void when_done(std::function<void(std::exception_ptr)> done);
    /// Waits for all callbacks of when_done().
    void drain();

private:
    struct Pending {
        std::unique_ptr<Event> event;
        std::function<void(std::exception_ptr)> done;
    };

    void run(const Placement& placement, const DeviceFactory& factory);
    void loop();
    /// Returns when there is a task, or shortly after.
    void stay_awake() const;
    bool complete_oldest(bool block);

    const int rank_;
    std::unique_ptr<Device> device_;
    std::unique_ptr<Stream> stream_;
    std::unique_ptr<kernels::Memory> pool_;
    std::unique_ptr<Stream> side_stream_;
    std::promise<void> open_;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Task> tasks_;
    std::atomic<bool> waiting_{false};  ///< whether there are tasks; written under mutex_
    bool stopping_ = false;

    std::deque<Pending> pending_;                 // this thread only
    std::vector<std::unique_ptr<Event>> events_;  // free ones, this thread only
    std::thread thread_;
};

}  // namespace rmsp::engine
