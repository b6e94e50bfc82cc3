#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace rmsp::engine {

/// A barrier of the workers inside one job that gives way when one of them fails, so that an exception on one device
/// never leaves the others waiting.
class Rendezvous {
public:
    /// `job` is the number of the job among those of its queue. `turn`, if not null, is locked by whoever calls
    /// arrive_and_wait(), which gives it to the others while it waits.
    explicit Rendezvous(int count, std::uint64_t job = 0, std::mutex* turn = nullptr)
        : count_(static_cast<std::uint32_t>(count)), job_(job), turn_(turn)
    {
    }

    std::uint64_t job() const noexcept { return job_; }
    /// Whether workers give each other the turn only here.
    bool in_turns() const noexcept { return turn_ != nullptr; }

    /// Returns when all workers have arrived.
    /// \throws Error(device) if a worker failed in this job
    void arrive_and_wait();
    /// Releases all who wait now or later; they throw.
    void fail() noexcept;

private:
    void wait_for_all();

    const std::uint32_t count_;
    const std::uint64_t job_;
    std::mutex* const turn_;
    std::atomic<std::uint32_t> arrived_{0};
    std::atomic<std::uint32_t> round_{0};
    std::atomic<bool> failed_{false};
};

}  // namespace rmsp::engine
