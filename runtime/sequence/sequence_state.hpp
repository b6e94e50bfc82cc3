#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "runtime/sequence/stage.hpp"

namespace rmsp::detail {

/// What a sequence's handle points to, and what its jobs share.
struct SequenceState {
    explicit SequenceState(std::shared_ptr<ScalarsState> s)
        : scalars(std::move(s)), room(static_cast<std::size_t>(scalars->runtime->devices()))
    {
    }
    ~SequenceState();
    SequenceState(const SequenceState&) = delete;
    SequenceState& operator=(const SequenceState&) = delete;

    /// Makes all ready for queue(): brings the passes' programs to the devices, unless they are there; blocks.
    void get_ready();
    /// Queues one worker's part, once.
    void queue(engine::Worker& worker, engine::Rendezvous& meeting) const;
    /// The sum of Stage::waits().
    std::int64_t waits() const;
    /// The sum of Stage::bytes().
    std::int64_t bytes() const;

    std::shared_ptr<ScalarsState> scalars;
    void send_programs();

    std::vector<std::unique_ptr<sequence::Stage>> stages;
    sequence::Stage* begun = nullptr;                               ///< the pass that is to end
    std::vector<kernels::DeviceArray<kernels::ScalarOp>> programs;  ///< of each device
    engine::Tasks room;                                             ///< to free them
    bool sent = false;
};

/// What handles point to.
struct SequenceAccess {
    static const std::shared_ptr<SequenceState>& state(const Sequence& sequence) { return sequence.state_; }
    static const std::shared_ptr<ScalarsState>& state(const Scalars& scalars) { return scalars.state_; }
    static Scalars handle(std::shared_ptr<ScalarsState> state) { return Scalars(std::move(state)); }
};

}  // namespace rmsp::detail

namespace rmsp::sequence {

/// Queues `count` steps: cycle[first], the ones after it, and round again. All have the same scalars. One job, or as
/// many as it takes so that none has more waits than transport::most_waits.
/// \throws Error(usage) for a step that alone has more
std::future<void> run_steps(const std::shared_ptr<const std::vector<std::shared_ptr<detail::SequenceState>>>& cycle,
                            std::int64_t first, std::int64_t count);

}  // namespace rmsp::sequence
