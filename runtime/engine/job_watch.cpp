#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rmsp/error.hpp>

#include "core/log.hpp"
#include "runtime/engine/job_queue.hpp"

/// What a JobQueue does of its own accord: it ends jobs that are late, and finds out that workers stand still.
namespace rmsp::engine {

void JobQueue::start_watch()
{
    if (watch_.joinable()) {
        return;
    }
    try {
        watch_ = std::thread([this] { keep_watch(); });
    } catch (const std::system_error& e) {
        throw Error(ErrorCode::out_of_memory, fmt::format("cannot start the thread that watches jobs: {}", e.what()));
    }
}

void JobQueue::watch(Clock::time_point then) noexcept
{
    if (then < watched_) {
        watched_ = then;
        deadline_set_.notify_all();
    }
}

void JobQueue::keep_watch() noexcept
{
    std::unique_lock lock(mutex_);
    while (watching_) {
        watched_ = std::min(schedule_.first_deadline(), next_look());
        for (const Waiting& running : running_) {
            watched_ = std::min(watched_, running.deadline);
        }
        if (watched_ == never) {
            deadline_set_.wait(lock);
        } else if (Clock::now() < watched_) {
            const auto until = watched_;
            deadline_set_.wait_until(lock, until);
        } else {
            lock.unlock();
            const auto now = Clock::now();
            end_waiting([now](const Waiting& waiting) { return waiting.deadline <= now; }, ErrorCode::deadline);
            while (const std::shared_ptr<Job> job = next_overdue(now)) {
                job->leave(error_ptr([&] { return job->condition()->error(); }));
            }
            try {
                look_for_stall(now);
            } catch (const std::exception& e) {
                core::log_debug(e.what());  // for lack of memory: once more, later
            }
            lock.lock();
        }
    }
}

void JobQueue::stop(const Job& job) noexcept
{
    const auto is_it = [&](const Waiting& other) { return other.job.get() == &job; };
    if (end_waiting(is_it, ErrorCode::cancelled) != 0) {
        return;
    }
    std::lock_guard lock(mutex_);
    if (const auto at = std::find_if(running_.begin(), running_.end(), is_it); at != running_.end()) {
        at->deadline = std::min(at->deadline, Clock::now() + end_patience);
        watch(at->deadline);
    }
}

std::shared_ptr<Job> JobQueue::next_overdue(Clock::time_point now) noexcept
{
    std::lock_guard lock(mutex_);
    for (Waiting& running : running_) {
        if (running.deadline <= now) {
            running.deadline = never;
            return running.job;
        }
    }
    return nullptr;
}

void JobQueue::watch_for_stalls(Clock::duration limit, std::function<std::string(const void*)> found)
{
    std::lock_guard lock(mutex_);
    start_watch();
    begin_lanes(Clock::now());
    stall_limit_ = limit;
    stall_found_ = std::move(found);
    watch(next_look());
}

bool JobQueue::stands_still()
{
    std::lock_guard lock(mutex_);
    return !stands_still_.empty();
}

bool JobQueue::abandoned()
{
    std::lock_guard lock(mutex_);
    return abandoned_;
}

Clock::time_point JobQueue::next_look() const noexcept
{
    if (stall_limit_ == Clock::duration::zero() || running_.empty() || abandoned_) {
        return never;
    }
    const auto since = std::max(progress_, looked_);
    return since + (stands_still_.empty() ? stall_limit_ : std::min<Clock::duration>(stall_limit_, end_patience));
}

std::string JobQueue::describe_stall(Job& job)
{
    std::vector<std::string> devices;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
        if (!job.is_done(static_cast<int>(i))) {
            devices.push_back(label_of(workers_[i]->device().info()));
        }
    }
    const std::string failed = stall_found_ ? stall_found_(job.meeting().carrier()) : std::string();
    return fmt::format("job {} ({}) made no progress for {} s; it is not done on {}{}{}", job.id, job.terms().kind,
                       std::chrono::duration<double>(stall_limit_).count(), fmt::join(devices, ", "),
                       failed.empty() ? "" : ": ", failed);
}

void JobQueue::look_for_stall(Clock::time_point now)
{
    std::shared_ptr<Job> oldest;
    std::string why;
    {
        std::lock_guard lock(mutex_);
        if (next_look() > now) {
            return;
        }
        oldest = running_.front().job;
        const std::uint32_t round = oldest->meeting().round();
        const bool moved = stands_still_.empty() && (seen_job_ != oldest->id || seen_round_ != round);
        looked_ = now;
        seen_job_ = oldest->id;
        seen_round_ = round;
        if (moved) {
            return;
        }
        why = stands_still_;
    }
    if (!why.empty()) {
        abandon(why);
        return;
    }
    why = describe_stall(*oldest);
    core::log_warning(why);
    {
        std::lock_guard lock(mutex_);
        if (running_.empty() || running_.front().job != oldest) {
            return;
        }
        stands_still_ = why;
        changed_.notify_all();
    }
    oldest->fail(error_ptr([&] { return Error(ErrorCode::device, why); }));
}

void JobQueue::abandon(const std::string& why)
{
    std::vector<std::shared_ptr<Job>> all;
    {
        std::lock_guard lock(mutex_);
        for (const Waiting& running : running_) {
            all.push_back(running.job);
        }
    }
    end_waiting([](const Waiting&) { return true; }, ErrorCode::device, why);
    for (const auto& job : all) {
        job->leave(error_ptr([&] { return Error(ErrorCode::device, why); }));
    }
    std::lock_guard lock(mutex_);
    if (!stands_still_.empty()) {
        abandoned_ = true;
        changed_.notify_all();
    }
}

}  // namespace rmsp::engine
