#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <kernels/spmv/spmv.hpp>

#include "runtime/engine/worker.hpp"

namespace rmsp::distributed {

/// Reasons for a kernel, in plans.
inline constexpr const char* won_race = "won the race";
inline constexpr const char* won_race_in_order = "won the race with vectors in the kernel's order";

/// How a race ended; read by other threads.
struct RaceOutcome {
    std::vector<double> seconds;  ///< least time of an apply with each runner; valid once there is a winner
    bool in_order = false;  ///< the times are of vectors in the order of each kernel; valid once there is a winner
    std::atomic<int> winner{-1};  ///< 0, the favourite, or another's number; -1: not decided yet
};

/// An operator that is several: the first applies run with one after the other and are timed by events on the device,
/// later ones with the fastest. Nobody waits for that: until the events are ready, the favourite runs. A loser costs
/// five applies; where some are close, these run more of them, which then cost little more than the winner's.
template <class T>
class Race final : public kernels::SpmvOperator<T> {
public:
    using Runners = std::vector<std::unique_ptr<kernels::SpmvOperator<T>>>;
    static constexpr std::size_t most_runners = 4;
    /// Applies of a runner in the first round: once to warm up, then timed; in later rounds these alone. One behind the
    /// other, as they will be: behind another's, kernels that gather out of a vector which just fits in the cache took
    /// up to 28 % longer.
    static constexpr int timed_applies = 4;
    static constexpr int first_applies = 1 + timed_applies;
    /// At the end of a round runners leave that are slower than the fastest by this share.
    static constexpr double clear = 0.1;
    /// Rounds at most. Four samples of a short kernel between events do not tell a few percent apart.
    static constexpr int rounds = 4;
    /// Applies until a race is decided at most, if the caller waits for each.
    static constexpr int most_applies = static_cast<int>(most_runners) * (first_applies + (rounds - 1) * timed_applies);
    /// In the last round a challenger wins if it is faster than the favourite by this share.
    static constexpr double margin = 0.02;

    /// Those of the runners `in` that another round has to tell apart, by the least times of so many rounds; one: the
    /// winner.
    static std::vector<std::size_t> survivors(const std::vector<double>& seconds, const std::vector<std::size_t>& in,
                                              int rounds_done);

    /// On the worker's thread, like every other member. \param runners  two to most_runners, the favourite first
    Race(engine::Worker& worker, Runners runners, std::shared_ptr<RaceOutcome> outcome);

    void apply(T alpha, const T* x, T beta, T* y, const kernels::Context& context) override;
    /// False until the race is decided; then the winner's.
    bool only_launches() const override;
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
    /// Decides for applies with vectors as they are, of so many entries: frees the losers, where these hold much.
    void decide_now(std::int64_t x_entries, std::int64_t y_entries);

private:
    void decide(std::int64_t x_entries, std::int64_t y_entries, bool in_order);
    /// Takes the times of the first events, two for each of so many applies of each of those that are in.
    void take_times(std::size_t applies);
    /// Frees the others; one: the winner.
    void keep(std::vector<std::size_t> survivors);
    /// Applies of a runner in this round, and of all.
    std::size_t applies_each() const { return static_cast<std::size_t>(round_ == 0 ? first_applies : timed_applies); }
    std::size_t applies() const { return applies_each() * in_.size(); }
    std::size_t timed() const { return timed_applies * in_.size(); }

    engine::Worker& worker_;
    Runners runners_;              ///< those that left are null
    std::vector<std::size_t> in_;  ///< their numbers
    std::shared_ptr<RaceOutcome> outcome_;
    std::vector<std::unique_ptr<engine::Event>> events_;  ///< begin and end of each timed apply of a round
    std::size_t turn_ = 0;
    int round_ = 0;
    std::size_t leader_ = 0;
};

}  // namespace rmsp::distributed
