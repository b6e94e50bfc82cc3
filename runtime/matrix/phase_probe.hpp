#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <rmsp/report.hpp>

#include "runtime/engine/worker.hpp"
#include "runtime/node/node.hpp"

namespace rmsp::distributed {

using detail::RuntimeState;

/// The middle one of the values, the upper of two; 0 if there are none.
double median(std::vector<double> values);

/// Times of the phases of profiled applies, recorded as events on each device's stream.
class PhaseProbe {
public:
    PhaseProbe(RuntimeState& runtime, int applies, int marks_each);
    /// Frees the events on their workers.
    ~PhaseProbe();
    PhaseProbe(const PhaseProbe&) = delete;
    PhaseProbe& operator=(const PhaseProbe&) = delete;

    /// The name of a mark at which a phase only begins.
    static constexpr const char* no_phase = "-";
    /// Ends a phase on the worker's stream that began at the mark before; the first mark of an apply begins it and is
    /// called
    /// "". Returns the mark.
    std::size_t mark(engine::Worker& worker, const char* phase);
    /// Ends a phase on a stream of the worker that began at the mark `since`. Phases of one name in an apply are added
    /// up.
    std::size_t mark(engine::Worker& worker, const char* phase, engine::Stream& stream, std::size_t since);
    /// Adds a phase that the host timed.
    void add(engine::Worker& worker, const char* phase, double seconds);
    /// The latest mark.
    std::size_t last(const engine::Worker& worker) const { return used_[static_cast<std::size_t>(worker.rank())] - 1; }
    /// Median seconds of each phase on each device. Only when all applies are done.
    std::vector<PhaseTimes> medians() const;

private:
    struct Mark {
        const char* phase = "";
        std::size_t since = 0;  ///< the mark where the phase began
        double seconds = -1;    ///< that the host timed instead; -1: none
        std::unique_ptr<engine::Event> event;
    };
    Mark& next(engine::Worker& worker);

    RuntimeState& runtime_;
    std::vector<std::vector<Mark>> marks_;  // of each device; grow where an apply has more than expected
    std::vector<std::size_t> used_;
    engine::Tasks room_;  // to free the events
};

}  // namespace rmsp::distributed
