#include "runtime/engine/worker.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <numa/binding.hpp>

#include "core/log.hpp"

namespace rmsp::engine {

Worker::Worker(int rank, const Placement& placement, DeviceFactory factory) : rank_(rank)
{
    thread_ = std::thread([this, placement, make = std::move(factory)] { run(placement, make); });
}

Worker::~Worker()
{
    stop();
    // The thread is gone; what is left of the device is released from here.
    if (device_) {
        device_->make_current();
        events_.clear();
        side_stream_.reset();
        pool_.reset();
        stream_.reset();
        device_.reset();
    }
}

void Worker::wait_until_open() { open_.get_future().get(); }

bool Worker::post(Task task)
{
    {
        std::lock_guard lock(mutex_);
        if (stopping_) {
            return false;
        }
        tasks_.push_back(std::move(task));
        waiting_.store(true, std::memory_order_relaxed);
    }
    changed_.notify_one();
    return true;
}

void Worker::stop() noexcept
{
    {
        std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void Worker::run(const Placement& placement, const DeviceFactory& factory)
{
    try {
        // Before the first CUDA call of this thread and its first touch of memory, so that both happen near the device.
        if (!placement.cpus.empty()) {
            const auto result = numa::bind_current_thread(placement.cpus);
            if (!result.bound) {
                core::log_warning(fmt::format("worker {} is not bound: {}", rank_, result.reason));
            }
        }
        device_ = factory();
        device_->make_current();
        stream_ = device_->make_stream(StreamPriority::normal);
        pool_ = device_->make_pool(*stream_);
    } catch (...) {
        {
            std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        open_.set_exception(std::current_exception());
        return;
    }
    open_.set_value();
    loop();
}

void Worker::loop()
{
    // While a GPU works on what was queued, this thread polls: a new task then starts without the cost of a wake-up,
    // and futures resolve when the device is done. With nothing under way it sleeps, after a while.
    int unasked = 0;
    while (true) {
        Task task;
        if (pending_.empty()) {
            stay_awake();
        }
        {
            std::unique_lock lock(mutex_);
            if (tasks_.empty() && pending_.empty()) {
                changed_.wait(lock, [this] { return !tasks_.empty() || stopping_; });
            }
            if (!tasks_.empty()) {
                task = std::move(tasks_.front());
                tasks_.pop_front();
                waiting_.store(!tasks_.empty(), std::memory_order_relaxed);
            } else if (stopping_ && pending_.empty()) {
                return;
            }
        }
        if (task) {
            task(*this);
            task = nullptr;
        }
        // Asking whether work is done takes a microsecond, which tasks that wait to be queued pay now and then only.
        constexpr int most_unasked = 16;
        if (waiting_.load(std::memory_order_relaxed) && ++unasked < most_unasked) {
            continue;
        }
        unasked = 0;
        while (complete_oldest(false)) {
        }
    }
}

void Worker::stay_awake() const
{
    // Whoever waits for each of his calls comes back within microseconds, while a wake-up costs tens of them. Threads
    // of host devices would take cores from each other.
    constexpr std::chrono::microseconds at_most{50};
    if (device_->shares_host_memory()) {
        return;
    }
    const auto end = std::chrono::steady_clock::now() + at_most;
    while (!waiting_.load(std::memory_order_relaxed) && std::chrono::steady_clock::now() < end) {
    }
}

Stream& Worker::side_stream()
{
    if (!side_stream_) {
        side_stream_ = device_->make_stream(StreamPriority::high);
    }
    return *side_stream_;
}

void Worker::when_done(std::function<void(std::exception_ptr)> done)
{
    if (device_->shares_host_memory()) {
        done(nullptr);
        return;
    }
    Pending pending;
    pending.done = std::move(done);
    try {
        if (events_.empty()) {
            events_.push_back(device_->make_event(false));
        }
        stream_->record(*events_.back());
        pending.event = std::move(events_.back());
        events_.pop_back();
    } catch (...) {
        pending.done(std::current_exception());
        return;
    }
    pending_.push_back(std::move(pending));
}

bool Worker::complete_oldest(bool block)
{
    if (pending_.empty()) {
        return false;
    }
    std::exception_ptr error;
    try {
        if (block) {
            pending_.front().event->synchronize();
        } else if (!pending_.front().event->ready()) {
            return false;
        }
    } catch (...) {
        error = std::current_exception();
    }
    Pending done = std::move(pending_.front());
    pending_.pop_front();
    events_.push_back(std::move(done.event));
    done.done(error);
    return true;
}

void Worker::drain()
{
    while (complete_oldest(true)) {
    }
}

}  // namespace rmsp::engine
