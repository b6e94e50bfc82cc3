#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/engine/rendezvous.hpp"
#include "runtime/engine/worker.hpp"

namespace rmsp::sequence {

/// What a device's worker queues as often as it is told to.
class Step {
public:
    Step() = default;
    virtual ~Step() = default;
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    /// Queues one worker's part, once.
    virtual void queue(engine::Worker& worker, engine::Rendezvous& meeting) const = 0;
    /// Whether queue() queues the same each time, in the worker's stream and nothing else, until changes() is another
    /// number. On the worker, as queue() is.
    virtual bool repeats(const engine::Worker& worker) const = 0;
    virtual std::int64_t changes(const engine::Worker& worker) const = 0;
};

/// Steps that one device has queued before and that are the same each time, as one piece of work: small kernels of a
/// GPU follow each other sooner so, and the host asks once for all.
class CapturedSteps {
public:
    using Cycle = std::vector<const Step*>;

    /// Queues steps `first` to `end` of a cycle, whose first step has this. \param alone  the runtime has one device;
    /// with several each worker calls this at the same time, and nothing is captured
    void queue(const Cycle& cycle, std::int64_t first, std::int64_t end, bool alone, engine::Worker& worker,
               engine::Rendezvous& meeting);
    /// Whether the last call queued captured steps; for tests.
    bool used() const noexcept { return used_; }

private:
    /// Forgets what was captured of another cycle, or before something changed. False: the steps do not repeat.
    bool look(const Cycle& cycle, const engine::Worker& worker);

    /// So many steps are queued one by one before some are captured, which costs about as much.
    static constexpr std::int64_t steps_before = 3;
    /// Rounds of the cycle in the longer piece.
    static constexpr std::int64_t rounds = 4;

    Cycle of_;
    std::int64_t changes_ = -1;
    std::int64_t seen_ = 0;  ///< steps of it
    bool refused_ = false;   ///< the device would not capture them
    bool used_ = false;
    std::unique_ptr<engine::Captured> round_;   ///< once round the cycle
    std::unique_ptr<engine::Captured> rounds_;  ///< `rounds` times
};

}  // namespace rmsp::sequence
