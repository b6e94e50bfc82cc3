#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include <kernels/spmv/spmv.hpp>

#include "runtime/engine/worker.hpp"

namespace rmsp::distributed {

/// How a race ended; read by other threads.
struct RaceOutcome {
    std::array<double, 2> seconds{};  ///< least time of an apply with each runner; valid once there is a winner
    bool in_order = false;            ///< these are of vectors in the order of each kernel; likewise
    std::atomic<int> winner{-1};      ///< 0, the favourite, or 1; -1: not decided yet
};

/// An operator that is two: the first applies run with both in turn and are timed by events on the device, later ones
/// with the faster. Nobody waits for that: until the events are ready, the favourite runs. The loser costs five
/// applies; where the two are close, more of them, which then cost little more than the winner's.
template <class T>
class Race final : public kernels::SpmvOperator<T> {
public:
    /// Applies of the first round, at whose end the race is decided if one runner is faster by `clear`. Each runner:
    /// once to warm up, then timed four times, in turn, so that both meet the same state of the machine.
    static constexpr int applies = 10;
    static constexpr double clear = 0.1;
    /// Rounds at most. Four samples of a kernel of 10 us between events do not tell a few percent apart.
    static constexpr int rounds = 4;
    /// Applies until a race is decided at most, if the caller waits for each.
    static constexpr int most_applies = applies + (rounds - 1) * (applies - 2);
    /// In the last round the challenger wins if it is faster by this share.
    static constexpr double margin = 0.02;

    /// The faster runner by the least times of so many rounds; -1: another round has to tell.
    static int winner(const std::array<double, 2>& seconds, int rounds_done)
    {
        const auto [favourite, challenger] = seconds;
        const double difference = favourite > challenger ? favourite - challenger : challenger - favourite;
        if (rounds_done < rounds && difference <= clear * std::max(favourite, challenger)) {
            return -1;
        }
        return challenger < (1 - margin) * favourite ? 1 : 0;
    }

    /// On the worker's thread, like every other member.
    Race(engine::Worker& worker, std::unique_ptr<kernels::SpmvOperator<T>> favourite,
         std::unique_ptr<kernels::SpmvOperator<T>> challenger, std::shared_ptr<RaceOutcome> outcome);

    void apply(T alpha, const T* x, T beta, T* y, const kernels::Context& context) override;
    /// 0 until the race is decided, since it needs whole applies; then the winner's.
    std::int64_t row_granule() const override;
    void apply_rows(std::int64_t first, std::int64_t end, T alpha, const T* x, T beta, T* y,
                    const kernels::Context& context) override;
    /// As row_granule().
    bool splits_columns() const override;
    void apply_early(const T* x, const kernels::Context& context) override;
    void apply_late(T alpha, const T* x, T beta, T* y, const kernels::Context& context) override;
    /// As row_granule().
    const kernels::RowOrder* order() const override;
    void apply_in_order(T alpha, const T* x, bool x_in_order, T beta, T* y, bool y_in_order,
                        const kernels::Context& context) override;
    /// As row_granule().
    std::int64_t sums() const override;
    void leave_sums(double* sums) override { runners_[leader_]->leave_sums(sums); }
    void update_values(const kernels::Context& context) override;
    /// Of the favourite, then of the winner.
    std::int64_t format_bytes() const override { return runners_[leader_]->format_bytes(); }
    std::int64_t workspace_bytes() const override;

    /// Decides a race at once if a runner has an order: for applies with vectors of that order, which take another time
    /// than those that were timed so far. Each runner multiplies twice, scratch vectors of `entries` entries, and the
    /// second time is timed. Waits for the stream. Does nothing once the race is decided, or where no runner has an
    /// order. \throws Error(out_of_memory) if there is no room for two vectors; the race goes on then
    void decide_in_order(std::int64_t entries);

private:
    /// Takes the times of the first events, two for each of so many applies.
    void take_times(std::size_t timed_applies);
    void decide(int winner);

    static constexpr int untimed = 2;

    engine::Worker& worker_;
    std::array<std::unique_ptr<kernels::SpmvOperator<T>>, 2> runners_;  ///< the loser is freed
    std::shared_ptr<RaceOutcome> outcome_;
    std::array<std::unique_ptr<engine::Event>, 2 * (applies - untimed)> events_;  ///< begin and end of each timed apply
    int turn_ = 0;
    int round_ = 0;
    std::size_t leader_ = 0;
};

}  // namespace rmsp::distributed
