#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>

#include "runtime/engine/rendezvous.hpp"
#include "runtime/engine/worker.hpp"

namespace rmsp::engine {

/// Work that all workers do together: each runs the body with its own rank.
class Job {
public:
    using Body = std::function<void(Worker&, Rendezvous&)>;

    /// `failed` is called with the job's number at each fail(); it must not throw. `ticket`: its place among the jobs
    /// that use the caller's host memory, 0 if it is none of them.
    Job(int workers, std::uint64_t number, std::uint64_t ticket, Body body, std::function<void()> finish,
        const std::function<void(std::uint64_t)>& failed, std::mutex* turn)
        : body_(std::move(body)),
          finish_(std::move(finish)),
          failed_(failed),
          ticket_(ticket),
          meeting_(workers, number, turn),
          remaining_(workers)
    {
    }

    std::future<void> future() { return promise_.get_future(); }
    const Body& body() const noexcept { return body_; }
    Rendezvous& meeting() noexcept { return meeting_; }
    std::uint64_t ticket() const noexcept { return ticket_; }
    /// Keeps the first error and releases workers that wait in meeting().
    void fail(std::exception_ptr error) noexcept;
    /// One worker is done. The last one runs `finish` (if nothing failed), notes its ticket in `done`, then settles the
    /// future.
    void complete_one(std::atomic<std::uint64_t>& done) noexcept;

private:
    Body body_;
    std::function<void()> finish_;
    const std::function<void(std::uint64_t)>& failed_;
    const std::uint64_t ticket_;
    Rendezvous meeting_;
    std::atomic<int> remaining_;
    std::mutex mutex_;
    std::exception_ptr error_;
    std::promise<void> promise_;
};

/// Hands jobs to a group of workers, in one order for all of them.
class JobQueue {
public:
    /// `shared_memory`: the devices have no streams that order their accesses to each other's memory, so each job
    /// starts when all workers have finished the one before.
    /// `failed`, if not empty, is told the number of a job that fails; it must not throw. `one_at_a_time`: no two
    /// workers are in a job's body at once, but while they wait for each other.
    JobQueue(std::span<const std::unique_ptr<Worker>> workers, bool shared_memory,
             std::function<void(std::uint64_t)> failed = {}, bool one_at_a_time = false)
        : workers_(workers), shared_memory_(shared_memory), failed_(std::move(failed)), one_at_a_time_(one_at_a_time)
    {
    }

    /// \param body     runs on every worker
    /// \param finish   runs once, on the last worker to complete, before the future is ready; may be empty
    /// \param host_data the job reads or writes caller's host memory: such jobs run one after the other, complete, so
    ///                  that one may use what the one before produced
    /// \throws Error(usage) if the runtime was destroyed; std::bad_alloc. Nothing has then been begun, on any worker
    std::future<void> submit(Job::Body body, std::function<void()> finish = {}, bool host_data = false);
    /// Gives the first of the tasks to one worker, behind the jobs; false if it has stopped.
    bool post(int rank, Tasks& tasks) noexcept { return workers_[static_cast<std::size_t>(rank)]->post(tasks); }
    /// No jobs are accepted afterwards.
    void close();

private:
    /// A worker's part of a job.
    void run(Job& job, Worker& worker) noexcept;

    std::span<const std::unique_ptr<Worker>> workers_;
    const bool shared_memory_;
    const std::function<void(std::uint64_t)> failed_;
    const bool one_at_a_time_;
    std::mutex turn_;
    std::mutex mutex_;
    bool closed_ = false;
    std::uint64_t jobs_ = 0;
    std::uint64_t host_tickets_ = 0;
    std::atomic<std::uint64_t> host_done_{0};
};

}  // namespace rmsp::engine
