#include "runtime/sequence/captured_steps.hpp"

#include <cstddef>

namespace rmsp::sequence {

bool CapturedSteps::look(const Cycle& cycle, const engine::Worker& worker)
{
    std::int64_t changes = 0;
    for (const Step* const step : cycle) {
        if (!step->repeats(worker)) {
            return false;
        }
        changes += step->changes(worker);
    }
    if (changes != changes_ || cycle != of_) {
        round_.reset();
        rounds_.reset();
        of_ = cycle;
        changes_ = changes;
        seen_ = 0;
        refused_ = false;
    }
    return !refused_;
}

void CapturedSteps::queue(const Cycle& cycle, std::int64_t first, std::int64_t end, bool alone, engine::Worker& worker,
                          engine::Rendezvous& meeting)
{
    const auto length = static_cast<std::int64_t>(cycle.size());
    const auto step = [&](std::int64_t i) { cycle[static_cast<std::size_t>(i % length)]->queue(worker, meeting); };
    if (!alone || worker.device().shares_host_memory() || !look(cycle, worker)) {
        for (std::int64_t i = first; i < end; ++i) {
            step(i);
        }
        return;
    }
    used_ = false;
    const auto captured = [&](std::unique_ptr<engine::Captured>& piece, std::int64_t steps) -> engine::Captured* {
        if (!piece && !refused_) {
            piece = worker.stream().capture([&] {
                for (std::int64_t i = 0; i < steps; ++i) {
                    step(i);
                }
            });
            refused_ = !piece;
        }
        return piece.get();
    };
    for (std::int64_t i = first; i < end;) {
        engine::Captured* piece = nullptr;
        std::int64_t steps = 1;
        if (i % length == 0 && seen_ >= steps_before && !refused_) {
            // The longer piece is made where a job has several of it.
            steps =
                end - i >= rounds * length && (rounds_ || end - i >= 2 * rounds * length) ? rounds * length : length;
            if (steps <= end - i) {
                piece = captured(steps == length ? round_ : rounds_, steps);
            }
        }
        if (piece != nullptr) {
            piece->queue(worker.stream());
            used_ = true;
        } else {
            steps = 1;
            step(i);
        }
        seen_ += steps;
        i += steps;
    }
}

}  // namespace rmsp::sequence
