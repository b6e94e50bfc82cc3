#include "runtime/engine/worker.hpp"

#include <chrono>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <numa/binding.hpp>
#include <rmsp/error.hpp>

#include "core/log.hpp"

namespace rmsp::engine {

Worker::Worker(int rank, const Placement& placement, DeviceFactory factory) : rank_(rank)
{
    try {
        thread_ = std::thread([this, placement, make = std::move(factory)] { run(placement, make); });
    } catch (const std::system_error& e) {
        throw Error(ErrorCode::out_of_memory, fmt::format("cannot start the thread of device {}: {}", rank, e.what()));
    }
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

bool Worker::post(Tasks& tasks) noexcept
{
    {
        std::lock_guard lock(mutex_);
        if (stopping_) {
            return false;
        }
        tasks_.splice(tasks_.end(), tasks, tasks.begin());
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
            if (!result.bound && placement.strict) {
                throw Error(ErrorCode::usage,
                            fmt::format("strict binding: worker {} is not bound: {}", rank_, result.reason));
            }
            if (!result.bound) {
                core::log_warning(fmt::format("worker {} is not bound: {}", rank_, result.reason));
            }
        }
        device_ = factory();
        device_->make_current();
        stream_ = device_->make_stream(StreamPriority::normal);
        pool_ = device_->make_pool(*stream_);
        open_to_callers_ = device_->open_to_callers();
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

void Worker::loop() noexcept
{
    // While a GPU works on what was queued, this thread polls: a new task then starts without the cost of a wake-up,
    // and futures resolve when the device is done. With nothing under way it sleeps, after a while.
    while (true) {
        Tasks one;
        if (!wait_for_place(one)) {
            return;
        }
        if (one.empty()) {
            complete();
        } else {
            perform(one);
            complete_now_and_then();
        }
        leave_place();
    }
}

bool Worker::wait_for_place(Tasks& one) noexcept
{
    using Clock = std::chrono::steady_clock;
    // Whoever waits for each of his calls comes back within microseconds, while a wake-up costs tens of them. Threads
    // of host devices would take cores from each other.
    const std::chrono::microseconds awake{device_->shares_host_memory() ? 0 : 50};
    constexpr std::chrono::nanoseconds one_look{500};
    const auto is_free = [this] { return place_.load(std::memory_order_relaxed) == Place::free; };
    const auto in_flight = [this] { return in_flight_.load(std::memory_order_relaxed) > 0; };
    const auto has_work = [&] { return is_free() && (!tasks_.empty() || stopping_ || in_flight()); };
    std::uint32_t visits = visits_.load(std::memory_order_relaxed);
    // A caller that queues one task after the other asks himself now and then how far the device is: two threads would
    // be in each other's way, also in the driver.
    const auto is_quiet = [&] {
        return visits_.load(std::memory_order_relaxed) == visits && wanted_.load(std::memory_order_relaxed) == 0;
    };
    const auto may_go = [&] {
        return is_free() && (waiting_.load(std::memory_order_relaxed) || (in_flight() && is_quiet()));
    };
    // No clock is read where there is something to do at once.
    auto awake_until = may_go() ? Clock::time_point::max() : Clock::now() + awake;
    while (true) {
        const bool sleeps = awake_until != Clock::time_point::max() && Clock::now() >= awake_until;
        if (sleeps || may_go()) {
            std::unique_lock lock(mutex_);
            if (sleeps && !has_work()) {
                asleep_ = true;
                changed_.wait(lock, has_work);
                asleep_ = false;
            }
            if (is_free() && !tasks_.empty()) {
                one.splice(one.begin(), tasks_, tasks_.begin());
                waiting_.store(!tasks_.empty(), std::memory_order_relaxed);
                place_.store(Place::taken, std::memory_order_relaxed);
                return true;
            }
            if (is_free() && in_flight() && is_quiet()) {
                place_.store(Place::asked, std::memory_order_relaxed);
                return true;
            }
            if (is_free() && stopping_ && !in_flight()) {
                return false;
            }
        }
        const auto now = Clock::now();
        const auto latest = visits_.load(std::memory_order_relaxed);
        if (latest != visits || awake_until == Clock::time_point::max()) {
            visits = latest;
            awake_until = now + awake;
        }
        while (Clock::now() < now + one_look && !(waiting_.load(std::memory_order_relaxed) && is_free())) {
        }
    }
}

bool Worker::take_place() noexcept
{
    // Beyond this many the device is far behind, and a call would wait for it sooner or later: a stream takes about a
    // thousand kernels. The worker's thread may wait, callers do not.
    constexpr std::int64_t most_in_flight = 128;
    constexpr int most_looks = 1 << 14;
    if (!open_to_callers_ || !device_->admits_this_thread()) {
        return false;
    }
    bool waits = false;
    bool taken = false;
    for (int looks = 0; looks < most_looks; ++looks) {
        if (place_.load(std::memory_order_relaxed) != Place::asked) {
            const std::lock_guard lock(mutex_);
            const Place place = place_.load(std::memory_order_relaxed);
            if (stopping_ || place == Place::taken || !tasks_.empty() ||
                in_flight_.load(std::memory_order_relaxed) >= most_in_flight) {
                break;
            }
            if (place == Place::free) {
                place_.store(Place::taken, std::memory_order_relaxed);
                taken = true;
                break;
            }
        }
        if (!waits) {
            waits = true;
            wanted_.fetch_add(1, std::memory_order_relaxed);
        }
    }
    if (waits) {
        wanted_.fetch_sub(1, std::memory_order_relaxed);
    }
    return taken;
}

void Worker::run_in_place(Tasks& tasks) noexcept
{
    Tasks one;
    one.splice(one.begin(), tasks, tasks.begin());
    try {
        const Visit visit = device_->enter();
        perform(one);
        complete_now_and_then();
        device_->leave(visit);
    } catch (...) {
        // Nothing was queued.
        one.front().done(std::current_exception());
    }
    visits_.fetch_add(1, std::memory_order_relaxed);
    leave_place();
}

void Worker::leave_place() noexcept
{
    bool wake = false;
    {
        const std::lock_guard lock(mutex_);
        place_.store(Place::free, std::memory_order_relaxed);
        wake = asleep_ && (!tasks_.empty() || stopping_ || in_flight_.load(std::memory_order_relaxed) > 0);
    }
    if (wake) {
        changed_.notify_one();
    }
}

Stream& Worker::side_stream()
{
    if (!side_stream_) {
        side_stream_ = device_->make_stream(StreamPriority::high);
    }
    return *side_stream_;
}

void Worker::perform(Tasks& one) noexcept
{
    // What may end late waits for others that are brief, for so long and for so many.
    constexpr double most_seconds = 20e-6;
    constexpr int most_uncovered = 16;
    Task& task = one.front();
    if (task.brief_seconds <= 0) {
        cover();
    }
    task.run(*this);
    if (!task.done) {
        return;
    }
    if (device_->shares_host_memory() || device_->lost()) {
        task.done(nullptr);
        return;
    }
    ++uncovered_;
    uncovered_seconds_ += task.brief_seconds;
    const bool covers = task.brief_seconds <= 0 || uncovered_seconds_ > most_seconds || uncovered_ >= most_uncovered;
    pending_.splice(pending_.end(), one);
    in_flight_.store(in_flight_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (covers) {
        cover();
    }
}

void Worker::cover() noexcept
{
    if (uncovered_ == 0) {
        return;
    }
    const auto first = std::prev(pending_.end(), uncovered_);
    uncovered_ = 0;
    uncovered_seconds_ = 0;
    try {
        if (events_.empty()) {
            events_.reserve(events_made_ + 1);
            events_.push_back(device_->make_event(false));
            ++events_made_;
        }
        stream_->record(*events_.back());
        pending_.back().event = std::move(events_.back());
        events_.pop_back();
    } catch (...) {
        const std::exception_ptr error = std::current_exception();
        // What was queued may still use what the caller takes back once he is told.
        while (pending_.begin() != first && complete_oldest(true)) {
        }
        try {
            stream_->synchronize();
        } catch (...) {
            // The first error is the one to tell.
        }
        take_done(pending_.end(), error);
    }
}

void Worker::complete_now_and_then() noexcept
{
    // Asking whether work is done takes a microsecond, which tasks that wait to be queued pay now and then only.
    constexpr int most_unasked = 16;
    if (++unasked_ >= most_unasked) {
        complete();
    }
}

void Worker::complete() noexcept
{
    unasked_ = 0;
    cover();
    while (complete_oldest(false)) {
    }
}

bool Worker::complete_oldest(bool block) noexcept
{
    if (pending_.empty()) {
        return false;
    }
    auto last = pending_.begin();
    while (!last->event) {
        ++last;
    }
    std::exception_ptr error;
    try {
        if (block) {
            last->event->synchronize();
        } else if (!last->event->ready()) {
            return false;
        }
    } catch (...) {
        error = std::current_exception();
    }
    events_.push_back(std::move(last->event));
    take_done(std::next(last), error);
    return true;
}

void Worker::take_done(Tasks::iterator end, const std::exception_ptr& error) noexcept
{
    // What ends with a task may take long: whoever only wants to ask does not wait for it.
    place_.store(Place::taken, std::memory_order_relaxed);
    Tasks done;
    done.splice(done.begin(), pending_, pending_.begin(), end);
    in_flight_.store(static_cast<std::int64_t>(pending_.size()), std::memory_order_relaxed);
    while (!done.empty()) {
        done.front().done(error);
        done.pop_front();
    }
}

void Worker::drain() noexcept
{
    cover();
    while (complete_oldest(true)) {
    }
}

}  // namespace rmsp::engine
