#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <stop_token>

#include <rmsp/error.hpp>

#include "core/epoch.hpp"

namespace rmsp::engine {

/// When a job's result is no longer wanted.
struct StopCondition {
    std::stop_token stop;
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();

    /// Whether it can ever hold.
    bool possible() const noexcept
    {
        return stop.stop_possible() || deadline != std::chrono::steady_clock::time_point::max();
    }
    bool holds() const noexcept
    {
        return stop.stop_requested() || (deadline != std::chrono::steady_clock::time_point::max() &&
                                         std::chrono::steady_clock::now() >= deadline);
    }
    /// What is told then.
    Error error() const;
};
/// The error of a job that ended early: ErrorCode::cancelled or deadline.
Error ended_early(ErrorCode why);

/// What a meeting throws where another worker of the job failed.
class GaveWay final : public Error {
public:
    GaveWay() : Error(ErrorCode::device, "another device failed in the same job") {}
};

/// A barrier of the workers inside one job that gives way when one of them fails, so that an exception on one device
/// never leaves the others waiting.
class Rendezvous {
public:
    /// `turn`, if not null, is locked by whoever calls arrive_and_wait(), which gives it to the others while it waits.
    explicit Rendezvous(int count, std::mutex* turn = nullptr) : count_(static_cast<std::uint32_t>(count)), turn_(turn)
    {
    }

    /// The number of the job among those of its queue, in the order in which the workers do them.
    std::uint64_t job() const noexcept { return job_; }
    /// Before the workers see it.
    void begin(std::uint64_t job, const StopCondition* condition) noexcept
    {
        job_ = job;
        condition_ = condition;
    }
    /// How often all have arrived, modulo 2^32. By any thread.
    std::uint32_t round() const noexcept { return round_.now(); }
    /// What brings data from device to device in this job; null: nothing so far. By any thread.
    const void* carrier() const noexcept { return carrier_.load(std::memory_order_relaxed); }
    void note_carrier(const void* carrier) noexcept { carrier_.store(carrier, std::memory_order_relaxed); }
    /// Whether workers give each other the turn only here.
    bool in_turns() const noexcept { return turn_ != nullptr; }

    /// Returns when all workers have arrived.
    /// \throws GaveWay if a worker failed in this job
    void arrive_and_wait();
    /// Releases all who wait now or later; they throw.
    void fail() noexcept;
    /// One of the workers will not arrive: the others no longer wait for it. Not between two calls of arrive_and_wait()
    /// by that worker.
    void leave() noexcept;
    /// Whether stop_point() may ever throw.
    bool may_stop() const noexcept { return condition_ != nullptr && condition_->possible(); }
    /// Between two steps of a long job. \throws Error(cancelled), Error(deadline) if its result is no longer wanted
    void stop_point() const
    {
        if (condition_ != nullptr && condition_->holds()) {
            throw condition_->error();
        }
    }

private:
    void wait_for_all();
    /// Ends the round if `count` workers have arrived.
    void end_round(std::uint32_t count) noexcept;

    std::atomic<std::uint32_t> count_;
    std::uint64_t job_ = 0;
    const StopCondition* condition_ = nullptr;
    std::mutex* const turn_;
    std::atomic<std::uint32_t> arrived_{0};
    core::Epoch round_;
    std::atomic<bool> failed_{false};
    std::atomic<const void*> carrier_{nullptr};
};

}  // namespace rmsp::engine
