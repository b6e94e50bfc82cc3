#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>

#include <rmsp/export.hpp>

/// How jobs share the devices of a runtime (docs/service.md).
namespace rmsp {

/// Where jobs of several lanes wait, how much of the devices' time each lane gets: 1, 8 or 64 parts. None is ever kept
/// waiting for good.
enum class Priority : std::uint8_t { low, normal, high };

/// What a call does where the queue is full (RuntimeOptions::queue_limit), or a device's memory.
enum class WhenFull : std::uint8_t {
    wait,    ///< blocks until there is room
    refuse,  ///< throws Error(busy), or Error(out_of_memory)
};

/// On what terms jobs are accepted. Jobs without options are done in the order in which they were accepted. Jobs with
/// options are in order with all those of the same thread, but go before or behind those of other threads as their
/// priorities and the time that each thread has used have it.
struct JobOptions {
    Priority priority = Priority::normal;
    /// When the result is no longer wanted: a product that still waits then, or is between two of its steps (pieces of
    /// a streamed matrix, runs of rows of a product of matrices), ends with Error(deadline); a solve ends with
    /// Outcome::time. A product that the devices are at is given a second more: then it fails as well, and what waits
    /// for it in vain is let go (docs/service.md).
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
    /// Once a stop is requested, a product that waits, or is between two of its steps, ends with Error(cancelled); a
    /// solve ends with Outcome::cancelled. y is then unspecified.
    std::stop_token stop{};
    /// Jobs of a lane are in order and share what their lane gets. 0: the calling thread's lane; else one for which
    /// the caller chose that number, so that one thread can serve several clients, or matrices, fairly: jobs of such a
    /// lane are in no order with others, also of the same thread.
    std::uint64_t lane = 0;
    WhenFull when_full = WhenFull::wait;
    /// Of what is to be placed on the devices: matrices, vectors, products of matrices. `wait` waits until others have
    /// given back what it needs; those who wait are served by priority, then in the order in which they came. `stop`
    /// and `deadline` end that. Where it would never fit, and for the parts of a whole, such as a multigrid
    /// preconditioner, it throws all the same.
    WhenFull when_no_memory = WhenFull::refuse;
};

/// While it lives, the calling thread's jobs are accepted on these terms, whatever function submits them: products,
/// solves, products of matrices, operations on vectors. Inner scopes replace outer ones; they end in reverse order, on
/// the same thread. `deadline` and `stop` end products with vectors, those of matrices, and solves; what only prepares
/// or copies is finished.
class JobScope {
public:
    /// \throws Error(usage) for a value that is no enumerator
    RMSP_API explicit JobScope(JobOptions options);
    RMSP_API ~JobScope();
    JobScope(const JobScope&) = delete;
    JobScope& operator=(const JobScope&) = delete;

    /// The innermost one of the calling thread; null: none.
    RMSP_API static const JobOptions* current() noexcept;

private:
    JobOptions options_;
    const JobOptions* outer_;
};

}  // namespace rmsp
