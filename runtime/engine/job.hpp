#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include <rmsp/job.hpp>

#include "runtime/engine/rendezvous.hpp"
#include "runtime/engine/schedule.hpp"
#include "runtime/engine/worker.hpp"

namespace rmsp::engine {

/// What make() returns, as the error of a job; what it throws, where there is no memory for that.
template <class Make>
std::exception_ptr error_ptr(const Make& make) noexcept
{
    try {
        throw make();
    } catch (...) {
        return std::current_exception();
    }
}

/// What a brief job reads and writes on a device: some 8 us on an H200, whose kernels take 5 for next to nothing.
inline constexpr std::int64_t most_bytes_of_a_brief_job = std::int64_t{16} << 20;

/// What a job is, beside its body. JobOptions are those of the calling thread's JobScope.
struct JobTerms {
    const char* kind = "job";             ///< for logs and traces; a literal
    const std::string* matrix = nullptr;  ///< name of the matrix for logs; lives as long as the body; null: none
    /// The job reads or writes caller's host memory: such jobs run one after the other, complete, so that one may use
    /// what the one before produced.
    bool host_data = false;
    /// JobOptions::deadline and stop end it: its results are then unspecified, and everything else is as it was.
    bool may_end_early = false;
    /// The first so many devices have a part in it. A lost one behind them does not hinder it.
    int devices = std::numeric_limits<int>::max();
    /// The body does nothing but put work on the worker's stream, and the caller waits for that: where there is one
    /// worker and it has nothing to do before, the calling thread does it in its place.
    bool only_queues = false;
    /// Its work takes microseconds on each device (see most_bytes_of_a_brief_job): where more jobs wait to be queued,
    /// it may be launched with them, and its end told with theirs.
    bool brief = false;
    /// The body uses nothing of the caller's but what its closures keep alive: where it does not end in time, the
    /// caller is told so while workers are still at it.
    bool owns_all = false;
    /// What it copies to the devices, for the metrics.
    std::int64_t streamed_bytes = 0;
    /// Of whose promised memory its body allocates; null: nobody's.
    std::shared_ptr<Reservation> reservation{};
};

/// Work that all workers do together: each runs the body with its own rank.
class Job {
public:
    using Body = std::function<void(Worker&, Rendezvous&)>;

    /// `failed` is called with the job's number at each fail(); it must not throw.
    Job(int workers, const JobTerms& terms, Body body, std::function<void()> finish,
        const std::function<void(std::uint64_t)>& failed, std::mutex* one_at_a_time)
        : terms_(terms),
          body_(std::move(body)),
          finish_(std::move(finish)),
          failed_(failed),
          meeting_(workers, one_at_a_time),
          remaining_(workers)
    {
    }

    std::future<void> future() { return promise_.get_future(); }
    const JobTerms& terms() const noexcept { return terms_; }
    const Body& body() const noexcept { return body_; }
    Rendezvous& meeting() noexcept { return meeting_; }
    /// Its place among the jobs that use the caller's host memory, 0 if it is none of them.
    std::uint64_t ticket() const noexcept { return ticket_; }

    /// What ends it early; before it is accepted. `stopped` is called, by any thread, when a stop is requested.
    void heed(const JobOptions& options, std::function<void()> stopped);
    const StopCondition* condition() const noexcept { return condition_ ? &*condition_ : nullptr; }
    /// Calls `stopped` no more. Waits for a call under way, so the caller holds no lock that it takes.
    void heed_no_more() noexcept { on_stop_.reset(); }
    /// It is given to the workers.
    void begin(std::uint64_t number, std::uint64_t ticket) noexcept;
    /// Whether its body is to be run: what the first worker to ask found, for all of them.
    bool goes_on() noexcept;

    /// Keeps the first error and releases workers that wait in meeting().
    void fail(std::exception_ptr error) noexcept;
    /// One worker is done; true for the last one.
    bool complete_one() noexcept { return remaining_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
    /// That worker is about to call complete_one(); is_done() then knows, of the first 64.
    void note_done(int rank) noexcept { done_.fetch_or(bit_of(rank), std::memory_order_relaxed); }
    bool is_done(int rank) const noexcept { return (done_.load(std::memory_order_relaxed) & bit_of(rank)) != 0; }
    /// After the last one: runs `finish` if nothing failed. Returns the error.
    std::exception_ptr finish() noexcept;
    /// One line about its end, `job=7 kind=product matrix="A" outcome=finished`, if spdlog's level is debug; before
    /// let_go().
    void log_end(const std::exception_ptr& error) const noexcept;
    /// One line about an error on one device.
    void log_failure(const DeviceInfo& device, const std::exception_ptr& error) const noexcept;
    /// Whatever the closures hold (matrices, vectors) is let go before the caller sees the job as done.
    void let_go() noexcept;
    /// Tells the caller; only the first call does.
    void settle(std::exception_ptr error) noexcept;
    /// It does not end in time: fails it, and tells the caller if JobTerms::owns_all. Workers may still be at it.
    void leave(const std::exception_ptr& error) noexcept;

    std::uint64_t id = 0;        ///< its place among those that were accepted, from 1 on; the queue's, under its lock
    Turn turn;                   ///< the queue's, under its lock
    Clock::time_point accepted;  ///< before the job is
    Clock::time_point given{};   ///< to the workers

private:
    void log(const std::string& what, const std::exception_ptr& error) const noexcept;
    static std::uint64_t bit_of(int rank) noexcept { return rank < 64 ? std::uint64_t{1} << rank : 0; }

    const JobTerms terms_;
    Body body_;
    std::function<void()> finish_;
    const std::function<void(std::uint64_t)>& failed_;
    std::uint64_t ticket_ = 0;
    Rendezvous meeting_;
    std::atomic<int> remaining_;
    std::atomic<std::uint64_t> done_{0};
    std::atomic<int> verdict_{0};  // 1: goes on, -1: does not
    std::optional<StopCondition> condition_;
    std::mutex mutex_;
    std::exception_ptr error_;
    std::promise<void> promise_;
    std::atomic<bool> settled_{false};
    std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace rmsp::engine
