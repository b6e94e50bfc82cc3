#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>

#include <rmsp/error.hpp>
#include <rmsp/metrics.hpp>

#include "runtime/engine/job.hpp"
#include "runtime/engine/schedule.hpp"
#include "runtime/engine/worker.hpp"

namespace rmsp::engine {

/// Hands jobs to a group of workers, in one order for all of them. Few are with the workers at a time; the others wait
/// in a Schedule, where those of other lanes may go before them, and where they can be cancelled.
class JobQueue {
public:
    /// `shared_memory`: the devices have no streams that order their accesses to each other's memory, so each job
    /// starts when all workers have finished the one before.
    /// `failed`, if not empty, is told the number of a job that fails; it must not throw. `one_at_a_time`: no two
    /// workers are in a job's body at once, but while they wait for each other. `limit`: most jobs that may wait; 0:
    /// any number.
    JobQueue(std::span<const std::unique_ptr<Worker>> workers, bool shared_memory,
             std::function<void(std::uint64_t)> failed = {}, bool one_at_a_time = false, std::int64_t limit = 0);
    /// Waits for the jobs that were accepted.
    ~JobQueue();
    JobQueue(const JobQueue&) = delete;
    JobQueue& operator=(const JobQueue&) = delete;

    /// \param body     runs on every worker
    /// \param finish   runs once, on the last worker to complete, before the future is ready; may be empty
    /// \throws Error(usage) if the runtime was destroyed, Error(cancelled), Error(deadline) and Error(busy) by the
    ///         calling thread's JobScope, Error(out_of_memory), std::bad_alloc. Nothing has then been begun, on any
    ///         worker
    std::future<void> submit(Job::Body body, std::function<void()> finish, const JobTerms& terms);
    std::future<void> submit(Job::Body body, std::function<void()> finish = {}, bool host_data = false)
    {
        JobTerms terms;
        terms.host_data = host_data;
        return submit(std::move(body), std::move(finish), terms);
    }
    /// Gives the first of the tasks to one worker, behind the jobs that it was given; false if it has stopped.
    bool post(int rank, Tasks& tasks) noexcept { return workers_[static_cast<std::size_t>(rank)]->post(tasks); }
    /// No jobs are accepted afterwards.
    void close() noexcept;
    /// close(), then waits for the jobs accepted before, but cancels those that still wait for their turn at `until`.
    /// Returns how many that were.
    std::int64_t drain(Clock::time_point until = Clock::time_point::max()) noexcept;
    /// Counts, times, and how long each device was busy; what else Metrics has is left empty.
    Metrics metrics();

private:
    /// A worker's part of a job.
    void run(Job& job, Worker& worker) noexcept;
    void complete(Job& job, Worker& worker) noexcept;
    /// Gives jobs to the workers while these have little to do; under the lock.
    void dispatch(Clock::time_point now) noexcept;
    void give(Waiting& waiting, Clock::time_point now) noexcept;
    /// Whether one more job may wait; under the lock.
    bool has_room() const noexcept;
    /// Whether the workers are to have one more job; under the lock.
    bool takes_more(Clock::time_point now) const noexcept;
    /// Ends jobs that wait and meet the condition, and tells their futures `why`. Returns how many.
    std::int64_t end_waiting(const std::function<bool(const Waiting&)>& is_it, ErrorCode why) noexcept;
    /// A job with that deadline is going to wait; under the lock. \throws Error(out_of_memory) if the thread that
    /// watches cannot be started
    void watch(Clock::time_point deadline);
    /// That thread.
    void end_expired() noexcept;

    std::span<const std::unique_ptr<Worker>> workers_;
    const bool shared_memory_;
    const std::function<void(std::uint64_t)> failed_;
    const bool one_at_a_time_;
    const std::int64_t limit_;
    std::mutex turn_;
    std::mutex mutex_;
    std::condition_variable changed_;       ///< jobs left the schedule or the workers, or the queue was closed
    std::condition_variable deadline_set_;  ///< earlier than what the watch sleeps for, or the watch is to end
    bool closed_ = false;
    bool watching_ = true;
    Schedule schedule_;
    std::uint64_t jobs_ = 0;
    std::uint64_t host_tickets_ = 0;
    std::int64_t running_ = 0;
    double typical_ = 0;  ///< seconds of a job: the longest one of late
    std::atomic<std::uint64_t> host_done_{0};
    const Clock::time_point opened_ = Clock::now();
    Clock::time_point last_done_ = opened_;
    Clock::time_point progress_ = opened_;                  ///< the workers were idle, or done with a job
    Clock::time_point watched_ = Clock::time_point::max();  ///< the deadline that the watch sleeps for
    Metrics metrics_;
    struct Busy {
        Clock::time_point until;
        std::atomic<std::int64_t> nanoseconds{0};
    };
    std::unique_ptr<Busy[]> busy_;  ///< a device's own worker writes
    std::thread watch_;
};

}  // namespace rmsp::engine
