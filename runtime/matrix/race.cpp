#include "runtime/matrix/race.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

#include <kernels/steps/support/support.hpp>

namespace rmsp::distributed {

template <class T>
std::vector<std::size_t> Race<T>::survivors(const std::vector<double>& seconds, const std::vector<std::size_t>& in,
                                            int rounds_done)
{
    const std::size_t fastest =
        *std::min_element(in.begin(), in.end(), [&](std::size_t i, std::size_t j) { return seconds[i] < seconds[j]; });
    if (rounds_done >= rounds) {
        const bool favourite_stays = in.front() == 0 && seconds[fastest] >= (1 - margin) * seconds[0];
        return {favourite_stays ? 0 : fastest};
    }
    std::vector<std::size_t> close;
    std::copy_if(in.begin(), in.end(), std::back_inserter(close),
                 [&](std::size_t i) { return seconds[i] - seconds[fastest] <= clear * seconds[i]; });
    return close;
}

template <class T>
Race<T>::Race(engine::Worker& worker, Runners runners, std::shared_ptr<RaceOutcome> outcome)
    : worker_(worker), runners_(std::move(runners)), in_(runners_.size()), outcome_(std::move(outcome))
{
    std::iota(in_.begin(), in_.end(), std::size_t{0});
    events_.resize(2 * timed());
    for (auto& event : events_) {
        event = worker_.device().make_event(true);
    }
    outcome_->seconds.assign(runners_.size(), std::numeric_limits<double>::infinity());
}

template <class T>
void Race<T>::apply(T alpha, const T* x, T beta, T* y, const kernels::Context& context)
{
    const bool racing = outcome_->winner.load(std::memory_order_relaxed) < 0;
    if (racing && turn_ == applies() &&
        std::all_of(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(2 * timed()),
                    [](const auto& event) { return event->ready(); })) {
        take_times(timed_applies);
        turn_ = 0;
        keep(survivors(outcome_->seconds, in_, ++round_));
    }
    if (outcome_->winner.load(std::memory_order_relaxed) >= 0 || turn_ == applies()) {
        runners_[leader_]->apply(alpha, x, beta, y, context);
        return;
    }
    const std::size_t runner = turn_ / applies_each();
    const std::size_t untimed = applies_each() - timed_applies;
    const std::size_t turn = turn_++ % applies_each();
    const bool is_timed = turn >= untimed;
    const std::size_t first_event = is_timed ? 2 * (runner * timed_applies + turn - untimed) : 0;
    if (is_timed) {
        worker_.stream().record(*events_[first_event]);
    }
    runners_[in_[runner]]->apply(alpha, x, beta, y, context);
    if (is_timed) {
        worker_.stream().record(*events_[first_event + 1]);
    }
}

template <class T>
bool Race<T>::only_launches() const
{
    return outcome_->winner.load(std::memory_order_relaxed) >= 0 && runners_[leader_]->only_launches();
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

namespace {

constexpr auto has_order = [](const auto& runner) { return runner && runner->order() != nullptr; };

}  // namespace

template <class T>
void Race<T>::decide_in_order(std::int64_t entries)
{
    if (std::any_of(runners_.begin(), runners_.end(), has_order)) {
        decide(entries, entries, true);
    }
}

template <class T>
void Race<T>::decide_now(std::int64_t x_entries, std::int64_t y_entries)
{
    decide(x_entries, y_entries, false);
}

template <class T>
void Race<T>::decide(std::int64_t x_entries, std::int64_t y_entries, bool in_order)
{
    if (outcome_->winner.load(std::memory_order_relaxed) >= 0) {
        return;
    }
    const kernels::DeviceArray<T> x(worker_.device(), static_cast<std::size_t>(x_entries));
    const kernels::DeviceArray<T> y(worker_.device(), static_cast<std::size_t>(y_entries));
    const auto context = worker_.context();
    kernels::fill(x.data(), x_entries, T{1}, context);
    const std::size_t runners = in_.size();
    for (std::size_t turn = 0; turn < 2 * runners; ++turn) {
        auto& runner = runners_[in_[turn / 2]];
        const bool timed = turn % 2 != 0;
        if (timed) {
            worker_.stream().record(*events_[turn - 1]);
        }
        if (in_order && has_order(runner)) {
            runner->apply_in_order(T{1}, x.data(), true, T{0}, y.data(), true, context);
        } else {
            runner->apply(T{1}, x.data(), T{0}, y.data(), context);
        }
        if (timed) {
            worker_.stream().record(*events_[turn]);
        }
    }
    worker_.stream().synchronize();
    outcome_->in_order = in_order;
    std::fill(outcome_->seconds.begin(), outcome_->seconds.end(), std::numeric_limits<double>::infinity());
    take_times(1);
    keep(survivors(outcome_->seconds, in_, rounds));
}

template <class T>
void Race<T>::take_times(std::size_t applies)
{
    for (std::size_t i = 0; i < applies * in_.size(); ++i) {
        double& least = outcome_->seconds[in_[i / applies]];
        least = std::min(least, events_[2 * i + 1]->seconds_since(*events_[2 * i]));
    }
}

template <class T>
void Race<T>::keep(std::vector<std::size_t> survivors)
{
    for (std::size_t i : in_) {
        if (std::find(survivors.begin(), survivors.end(), i) == survivors.end()) {
            runners_[i].reset();  // its memory is used again only behind what is queued
        }
    }
    in_ = std::move(survivors);
    leader_ = in_.front();
    if (in_.size() == 1) {
        outcome_->winner.store(static_cast<int>(leader_), std::memory_order_release);
    }
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
