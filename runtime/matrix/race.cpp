#include "runtime/matrix/race.hpp"

#include <algorithm>
#include <limits>

#include <kernels/steps/support/support.hpp>

namespace rmsp::distributed {

template <class T>
Race<T>::Race(engine::Worker& worker, std::unique_ptr<kernels::SpmvOperator<T>> favourite,
              std::unique_ptr<kernels::SpmvOperator<T>> challenger, std::shared_ptr<RaceOutcome> outcome)
    : worker_(worker), runners_{std::move(favourite), std::move(challenger)}, outcome_(std::move(outcome))
{
    for (auto& event : events_) {
        event = worker_.device().make_event(true);
    }
    outcome_->seconds.fill(std::numeric_limits<double>::infinity());
}

template <class T>
void Race<T>::apply(T alpha, const T* x, T beta, T* y, const kernels::Context& context)
{
    if (turn_ == applies && outcome_->winner.load(std::memory_order_relaxed) < 0 &&
        std::all_of(events_.begin(), events_.end(), [](const auto& event) { return event->ready(); })) {
        take_times(applies - untimed);
        if (const int faster = winner(outcome_->seconds, ++round_); faster >= 0) {
            decide(faster);
        } else {
            turn_ = untimed;
        }
    }
    if (turn_ == applies) {
        runners_[leader_]->apply(alpha, x, beta, y, context);
        return;
    }
    const int turn = turn_++;
    const auto timed = static_cast<std::size_t>(std::max(0, turn - untimed));
    if (turn >= untimed) {
        worker_.stream().record(*events_[2 * timed]);
    }
    runners_[static_cast<std::size_t>(turn % 2)]->apply(alpha, x, beta, y, context);
    if (turn >= untimed) {
        worker_.stream().record(*events_[2 * timed + 1]);
    }
}

template <class T>
std::int64_t Race<T>::row_granule() const
{
    return outcome_->winner.load(std::memory_order_relaxed) < 0 ? 0 : runners_[leader_]->row_granule();
}

template <class T>
void Race<T>::apply_rows(std::int64_t first, std::int64_t end, T alpha, const T* x, T beta, T* y,
                         const kernels::Context& context)
{
    runners_[leader_]->apply_rows(first, end, alpha, x, beta, y, context);
}

template <class T>
bool Race<T>::splits_columns() const
{
    return outcome_->winner.load(std::memory_order_relaxed) >= 0 && runners_[leader_]->splits_columns();
}

template <class T>
void Race<T>::apply_early(const T* x, const kernels::Context& context)
{
    runners_[leader_]->apply_early(x, context);
}

template <class T>
void Race<T>::apply_late(T alpha, const T* x, T beta, T* y, const kernels::Context& context)
{
    runners_[leader_]->apply_late(alpha, x, beta, y, context);
}

template <class T>
const kernels::RowOrder* Race<T>::order() const
{
    return outcome_->winner.load(std::memory_order_relaxed) < 0 ? nullptr : runners_[leader_]->order();
}

template <class T>
void Race<T>::apply_in_order(T alpha, const T* x, bool x_in_order, T beta, T* y, bool y_in_order,
                             const kernels::Context& context)
{
    runners_[leader_]->apply_in_order(alpha, x, x_in_order, beta, y, y_in_order, context);
}

template <class T>
std::int64_t Race<T>::sums() const
{
    return outcome_->winner.load(std::memory_order_relaxed) < 0 ? 0 : runners_[leader_]->sums();
}

template <class T>
void Race<T>::decide_in_order(std::int64_t entries)
{
    const auto ordered = [](const auto& runner) { return runner && runner->order() != nullptr; };
    if (outcome_->winner.load(std::memory_order_relaxed) >= 0 ||
        std::none_of(runners_.begin(), runners_.end(), ordered)) {
        return;
    }
    const kernels::DeviceArray<T> x(worker_.device(), static_cast<std::size_t>(entries));
    const kernels::DeviceArray<T> y(worker_.device(), static_cast<std::size_t>(entries));
    const auto context = worker_.context();
    kernels::fill(x.data(), entries, T{1}, context);
    for (std::size_t turn = 0; turn < 4; ++turn) {
        auto& runner = runners_[turn % 2];
        const bool timed = turn >= 2;
        if (timed) {
            worker_.stream().record(*events_[2 * (turn - 2)]);
        }
        if (ordered(runner)) {
            runner->apply_in_order(T{1}, x.data(), true, T{0}, y.data(), true, context);
        } else {
            runner->apply(T{1}, x.data(), T{0}, y.data(), context);
        }
        if (timed) {
            worker_.stream().record(*events_[2 * (turn - 2) + 1]);
        }
    }
    worker_.stream().synchronize();
    turn_ = applies;
    outcome_->in_order = true;
    outcome_->seconds.fill(std::numeric_limits<double>::infinity());
    take_times(2);
    decide(winner(outcome_->seconds, rounds));
}

template <class T>
void Race<T>::take_times(std::size_t timed_applies)
{
    for (std::size_t timed = 0; timed < timed_applies; ++timed) {
        double& least = outcome_->seconds[timed % 2];
        least = std::min(least, events_[2 * timed + 1]->seconds_since(*events_[2 * timed]));
    }
}

template <class T>
void Race<T>::decide(int winner)
{
    leader_ = static_cast<std::size_t>(winner);
    runners_[1 - leader_].reset();  // its memory is used again only behind what is queued
    outcome_->winner.store(winner, std::memory_order_release);
}

template <class T>
void Race<T>::update_values(const kernels::Context& context)
{
    for (const auto& runner : runners_) {
        if (runner) {
            runner->update_values(context);
        }
    }
}

template <class T>
std::int64_t Race<T>::workspace_bytes() const
{
    std::int64_t bytes = 0;
    for (const auto& runner : runners_) {
        bytes += runner ? runner->workspace_bytes() : 0;
    }
    return bytes;
}

#define RMSP_INSTANTIATE(T) template class Race<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
