#include "runtime/engine/worker.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <numa/binding.hpp>
#include <rmsp/error.hpp>

#include "core/log.hpp"
#include "core/team.hpp"

namespace rmsp::engine {
namespace {

/// From so many tasks in a row on more are expected, for which small ones are worth waking a team: kernels have raced
/// before, under the same conditions.
constexpr int long_row = 128;

}  // namespace

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
        launches_.reset();
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

bool Worker::try_take_place() noexcept
{
    if (device_->shares_host_memory() || !place_.try_lock()) {
        return false;
    }
    {
        const std::lock_guard lock(mutex_);
        if (!stopping_ && tasks_.empty()) {
            return true;
        }
    }
    place_.unlock();
    return false;
}

void Worker::perform_here(Tasks& tasks) noexcept
{
    Tasks one;
    one.splice(one.begin(), tasks, tasks.begin());
    const int had = device_->visit();
    perform(one, false);
    device_->leave(had);
    changed_.notify_one();
    place_.unlock();  // last: stop() waits for it, and then the worker may be gone
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
    // A thread that was here is gone, too.
    const std::lock_guard place(place_);
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
        core::make_ready_for_ends_of_teams();
        device_ = factory();
        device_->make_current();
        stream_ = device_->make_stream(StreamPriority::normal);
        pool_ = device_->make_pool(*stream_);
        launches_ = stream_->make_launch_list();
        // Loops over a device's part are its own cores' work.
        core::set_threads_of_team(std::max(context().threads, 1));
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
    int unasked = 0;
    while (true) {
        if (under_way_.load(std::memory_order_relaxed) == 0) {
            stay_awake();
            std::unique_lock lock(mutex_);
            if (tasks_.empty()) {
                in_a_row_ = 0;
            }
            changed_.wait(lock, [this] { return !tasks_.empty() || !pending_.empty() || stopping_; });
            if (tasks_.empty() && pending_.empty()) {
                return;
            }
        }
        if (waiting_.load(std::memory_order_relaxed)) {
            perform_next();
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

void Worker::perform_next() noexcept
{
    // The place first: who has it has seen that there was no task before his.
    const std::lock_guard place(place_);
    Tasks one;
    {
        const std::lock_guard lock(mutex_);
        if (!tasks_.empty()) {
            one.splice(one.begin(), tasks_, tasks_.begin());
        }
        waiting_.store(!tasks_.empty(), std::memory_order_relaxed);
    }
    if (!one.empty()) {
        perform(one, true);
    }
}

void Worker::stay_awake() const
{
    const auto is_there = [this] {
        return waiting_.load(std::memory_order_relaxed) || under_way_.load(std::memory_order_relaxed) > 0;
    };
    const bool on_host = device_->shares_host_memory();
    if (!on_host || core::team_may_wait_awake()) {
        core::wait_awake(on_host, is_there);
    }
}

Stream& Worker::side_stream()
{
    launch_kept();
    if (!side_stream_) {
        side_stream_ = device_->make_stream(StreamPriority::high);
    }
    return *side_stream_;
}

std::unique_ptr<Event> Worker::take_event()
{
    {
        const std::lock_guard lock(mutex_);
        if (!events_.empty()) {
            auto event = std::move(events_.back());
            events_.pop_back();
            return event;
        }
        events_.reserve(events_made_ + 1);
        ++events_made_;
    }
    return device_->make_event(false);
}

void Worker::perform(Tasks& one, bool more) noexcept
{
    Task& task = one.front();
    if (device_->shares_host_memory()) {
        in_a_row_ = std::min(in_a_row_ + 1, long_row);
        if (core::own_team != nullptr) {
            core::own_team->set_more_follows(in_a_row_ >= long_row);
        }
        task.run(*this);
        if (task.done) {
            task.done(nullptr);
        }
        one.clear();
        return;
    }
    // Launches are kept while the device has other work, and tasks are behind this one or share an end with it.
    const bool many = sharing_ > 0 || (more && waiting_.load(std::memory_order_relaxed) &&
                                       under_way_.load(std::memory_order_relaxed) > 0);
    run_task(task, launches_ && task.brief && many);
    // Tasks that wait are performed next, in any case. To record an event takes about a microsecond, and to ask for it
    // as long.
    constexpr int most_sharing = 7;
    const bool others_follow = more && waiting_.load(std::memory_order_relaxed);
    if (!task.done) {
        if (sharing_ > 0 && !others_follow) {
            mark_end(pending_.back());
        }
        return;
    }
    if (task.brief && others_follow && sharing_ < most_sharing) {
        task.shares = true;
        ++sharing_;
    } else {
        mark_end(task);
    }
    const std::lock_guard lock(mutex_);
    pending_.splice(pending_.end(), one);
    under_way_.store(pending_.size(), std::memory_order_relaxed);
}

void Worker::run_task(Task& task, bool keeps) noexcept
{
    if (!keeps) {
        try {
            launch_kept();
        } catch (...) {
            // Told to those that kept it.
        }
    }
    keeps_launches_ = keeps;
    task.run(*this);
    keeps_launches_ = false;
}

void Worker::launch_kept()
{
    if (!launches_) {
        return;
    }
    try {
        launches_->launch_all();
    } catch (...) {
        if (std::exchange(sharing_, 0) > 0) {
            end_with_error(pending_.back(), std::current_exception());
        }
        throw;
    }
}

void Worker::mark_end(Task& task) noexcept
{
    const bool others_share = std::exchange(sharing_, 0) > 0;
    task.shares = false;
    if (device_->lost()) {
        // A task that begins on a lost device finds out itself. Those before it would have been told by the event.
        const auto fail = [this](Task& one) {
            one.shares = false;
            try {
                device_->require();
            } catch (...) {
                one.failure = std::current_exception();
            }
        };
        if (launches_ && launches_->drop()) {
            fail(task);
        }
        if (others_share) {
            fail(pending_.back());
        }
        return;
    }
    try {
        if (launches_) {
            launches_->launch_all();
        }
        task.event = take_event();
        stream_->record(*task.event);
    } catch (...) {
        end_with_error(task, std::current_exception());
    }
}

void Worker::end_with_error(Task& task, std::exception_ptr error) noexcept
{
    task.shares = false;
    task.failure = std::move(error);
    task.event = nullptr;
    // What was queued may still use what the caller takes back once he is told.
    try {
        stream_->synchronize();
    } catch (...) {
        // The first error is the one to tell.
    }
}

bool Worker::complete_oldest(bool block) noexcept
{
    Tasks::iterator last;  // stays there: no other thread takes it
    {
        const std::lock_guard lock(mutex_);
        last = std::find_if(pending_.begin(), pending_.end(), [](const Task& task) { return !task.shares; });
        if (last == pending_.end()) {
            return false;
        }
    }
    std::exception_ptr error = std::move(last->failure);
    try {
        if (block && last->event) {
            last->event->synchronize();
        } else if (last->event && !last->event->ready()) {
            return false;
        }
    } catch (...) {
        error = std::current_exception();
    }
    Tasks ended;
    {
        const std::lock_guard lock(mutex_);
        ended.splice(ended.begin(), pending_, pending_.begin(), std::next(last));
        under_way_.store(pending_.size(), std::memory_order_relaxed);
        if (last->event) {
            events_.push_back(std::move(last->event));
        }
    }
    for (Task& task : ended) {
        task.done(error);
    }
    return true;
}

void Worker::drain() noexcept
{
    if (sharing_ > 0) {
        mark_end(pending_.back());
    }
    while (complete_oldest(true)) {
    }
}

}  // namespace rmsp::engine
