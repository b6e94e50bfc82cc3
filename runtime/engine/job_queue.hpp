#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <rmsp/error.hpp>
#include <rmsp/metrics.hpp>

#include "runtime/engine/job.hpp"
#include "runtime/engine/schedule.hpp"
#include "runtime/engine/worker.hpp"

namespace rmsp::engine {

/// A deadline that does not come.
inline constexpr auto never = Clock::time_point::max();
/// How long the workers may go on with a job that is no longer wanted, and with one that was told to have failed.
inline constexpr std::chrono::seconds end_patience{1};

/// Hands jobs to a group of workers, in one order for all of them. As long as there are no lanes, jobs are given to the
/// workers as they come, and no clock is read. Lanes begin with the first job with options or call of metrics(), or
/// from the start where there is a limit: then few jobs are with the workers at a time, and the others wait in a
/// Schedule, where those of other lanes may go before them, and where they can be cancelled.
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
    /// Returns how many that were. Does not wait for what is abandoned().
    std::int64_t drain(Clock::time_point until = never) noexcept;
    /// From now on a job fails where the workers have made no progress for so long, or up to twice as long: no job has
    /// ended, and they did not meet in the oldest one. `found` is told what carries data in that job (see
    /// Rendezvous::carrier()); it makes the workers stop waiting if it can, and returns what failed, or nothing. It may
    /// be called by another thread, and throws std::bad_alloc alone. Until there is progress other jobs are refused;
    /// where there is none all have failed before long. Lanes begin.
    /// \throws Error(out_of_memory) if the thread that watches cannot be started
    void watch_for_stalls(Clock::duration limit, std::function<std::string(const void* carrier)> found);
    /// Whether jobs are refused for want of progress. By any thread.
    bool stands_still();
    /// Whether workers are at jobs that were told to have failed, and may never end. By any thread.
    bool abandoned();
    /// Whether all jobs that were accepted have ended.
    bool idle();
    /// Counts from the start; times, and how long each device was busy, from the first call or lane on. What else
    /// Metrics has is left empty.
    Metrics metrics();

private:
    /// A worker's part of a job.
    void run(Job& job, Worker& worker) noexcept;
    /// The worker's part failed.
    static void fail(Job& job, Worker& worker, std::exception_ptr error) noexcept;
    void complete(Job& job, Worker& worker) noexcept;
    /// The job ended where nobody looks at the queue: counts it and returns true. False: account() does.
    bool count_as_ended() noexcept;
    void account(const Job& job, const std::exception_ptr& error, Clock::time_point now) noexcept;
    /// Who has a job's parts; to_this_thread: the calling one, which has the place of the only worker.
    enum class Given : std::uint8_t { not_yet, to_workers, to_this_thread };
    /// Accepts a job if there are no lanes; not_yet: there are.
    Given give_without_lanes(Job& job, Tasks& parts) noexcept;
    /// Accepts a job where there are lanes, or begins them. The caller holds the job: it is not freed under the lock,
    /// which its stop callback takes. \throws as submit()
    void accept(const std::shared_ptr<Job>& job, Tasks& parts, const JobOptions* options);
    bool has_lanes() const noexcept { return (ended_.load(std::memory_order_relaxed) & with_lanes) != 0; }
    /// Once; under the lock.
    void begin_lanes(Clock::time_point now) noexcept;
    /// How many jobs the workers have; under the lock.
    std::int64_t running() const noexcept
    {
        return static_cast<std::int64_t>(jobs_ - ended_.load(std::memory_order_relaxed) / one_ended);
    }
    /// Gives jobs to the workers while these have little to do; under the lock.
    void dispatch(Clock::time_point now) noexcept;
    /// Gives them the one job of the list, which it then keeps.
    void give(WaitingList& one, Clock::time_point now) noexcept;
    /// It has its place among the jobs; under the lock.
    void begin(Job& job) noexcept;
    /// Under the lock.
    void post(Job& job, Tasks& parts) noexcept;
    /// Whether one more job may wait; under the lock.
    bool has_room() const noexcept;
    /// Whether the workers are to have one more job; under the lock.
    bool takes_more(Clock::time_point now) const noexcept;
    /// Ends jobs that wait and meet the condition, and tells each future an error of its own: of those words, without
    /// any ended_early(why). Returns how many.
    std::int64_t end_waiting(const std::function<bool(const Waiting&)>& is_it, ErrorCode why,
                             const std::string& words = {}) noexcept;
    /// A stop was requested for that job.
    void stop(const Job& job) noexcept;
    /// Starts the thread that watches, if it is not there; under the lock.
    /// \throws Error(out_of_memory) if it cannot be started
    void start_watch();
    /// Something is to be done then; under the lock.
    void watch(Clock::time_point then) noexcept;
    /// That thread.
    void keep_watch() noexcept;
    /// A job that the workers should have ended by now, once; null: there is none.
    std::shared_ptr<Job> next_overdue(Clock::time_point now) noexcept;
    /// When the workers will have made no progress for too long; under the lock.
    Clock::time_point next_look() const noexcept;
    void look_for_stall(Clock::time_point now);
    /// What is told of a stall in that job. \throws std::bad_alloc
    std::string describe_stall(Job& job);
    /// Fails all jobs that were accepted. \throws std::bad_alloc
    void abandon(const std::string& why);

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
    WaitingList running_;  ///< what the workers have, of what was given since lanes began; oldest first
    std::uint64_t jobs_ = 0;
    std::uint64_t host_tickets_ = 0;
    /// Jobs that the workers had and have ended, in steps of one_ended; with_lanes: there are lanes, and these jobs are
    /// counted under the lock.
    std::atomic<std::uint64_t> ended_{0};
    static constexpr std::uint64_t with_lanes = 1;
    static constexpr std::uint64_t one_ended = 2;
    std::uint64_t failed_jobs_ = 0;  ///< of these, those that ended with an error
    double typical_ = 0;             ///< seconds of a job: the longest one of late
    std::atomic<std::uint64_t> host_done_{0};
    const Clock::time_point opened_ = Clock::now();
    Clock::time_point lanes_begin_ = opened_;  ///< before with_lanes is set
    Clock::time_point last_done_ = opened_;
    Clock::time_point progress_ = opened_;  ///< the workers were idle, or done with a job
    Clock::time_point watched_ = never;     ///< what the watch sleeps for
    Clock::duration stall_limit_{0};
    std::function<std::string(const void*)> stall_found_;
    Clock::time_point looked_{};    ///< when the watch last saw progress in a job
    std::uint64_t seen_job_ = 0;    ///< the oldest job then,
    std::uint32_t seen_round_ = 0;  ///< and its meeting's round
    std::string stands_still_;      ///< why jobs are refused; empty: they are not
    bool abandoned_ = false;
    Metrics metrics_;  ///< without `finished`
    struct Busy {
        Clock::time_point until;
        std::atomic<std::int64_t> nanoseconds{0};
    };
    std::unique_ptr<Busy[]> busy_;  ///< a device's own worker writes
    std::thread watch_;
};

}  // namespace rmsp::engine
