#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>

#include <rmsp/job.hpp>

#include "runtime/engine/task.hpp"

namespace rmsp::engine {

class Job;
using Clock = std::chrono::steady_clock;

/// Whose turn a job takes.
struct Turn {
    std::uint64_t lane = 0;    ///< 0: that of all jobs without options
    std::uint64_t thread = 0;  ///< lane of the calling thread, whether the job goes there or not
    double weight = 1;         ///< parts of the devices' time
    double charged = 0;        ///< seconds that the lane was charged beforehand
};

/// The turn of a job that the calling thread submits; options may be null.
Turn turn_of(const JobOptions* options) noexcept;

/// A job that waits.
struct Waiting {
    std::shared_ptr<Job> job;
    Tasks parts;
    Turn turn;
    std::uint64_t sequence = 0;
    std::uint64_t behind = 0;  ///< goes after the job of that sequence, in the other lane of its thread; 0: none
    Clock::time_point deadline = Clock::time_point::max();
};

/// Elements move from list to list without allocating.
using WaitingList = std::list<Waiting>;

/// The order of jobs that wait: in lanes, first come first served in each, and of the lanes the one that had least of
/// the devices' time by its weight (start-time fair queueing: Goyal, Vin and Cheng, SIGCOMM 1996). A lane that was
/// empty begins where the others are, so what it did not use is not owed to it. Not safe for threads.
class Schedule {
public:
    bool empty() const noexcept { return size_ == 0; }
    std::size_t size() const noexcept { return size_; }

    /// Takes the one job of the list. \throws std::bad_alloc; nothing has then changed
    void add(WaitingList& one);
    /// Moves the job whose turn it is to the end of `out`; false if none waits.
    bool next(WaitingList& out) noexcept;
    /// Moves the jobs of which `is_it` is true to `out`.
    void take_if(WaitingList& out, const std::function<bool(const Waiting&)>& is_it) noexcept;
    /// The earliest deadline of those that wait.
    Clock::time_point first_deadline() const noexcept;
    /// What a job that next() gave took in the end.
    void ran(const Turn& turn, double seconds) noexcept;

private:
    struct Lane {
        WaitingList jobs;
        double used = 0;                 ///< weighted seconds
        double expected = 0;             ///< seconds of its next job, as the ones before took
        std::uint64_t last_ordered = 0;  ///< of its thread's jobs without options, the sequence of the last one
    };
    bool may_go(const Waiting& job) const noexcept;
    void forget_idle_lanes() noexcept;

    std::map<std::uint64_t, Lane> lanes_;
    std::size_t size_ = 0;
    std::uint64_t sequence_ = 0;
    double now_ = 0;  ///< weighted seconds of the lane that was served last
};

}  // namespace rmsp::engine
