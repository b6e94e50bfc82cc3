#include "runtime/engine/schedule.hpp"

#include <algorithm>
#include <atomic>

namespace rmsp::engine {
namespace {

constexpr std::uint64_t ordered = 0;

/// Lanes of threads are odd, those that callers name even.
std::uint64_t lane_of_this_thread() noexcept
{
    static std::atomic<std::uint64_t> threads{0};
    thread_local const std::uint64_t number = threads.fetch_add(1, std::memory_order_relaxed);
    return 2 * number + 1;
}

/// Whether everything up to that sequence has left the list, whose sequences rise.
bool passed(const WaitingList& jobs, std::uint64_t sequence) noexcept
{
    return jobs.empty() || jobs.front().sequence > sequence;
}

}  // namespace

Turn turn_of(const JobOptions* options) noexcept
{
    constexpr double weights[] = {1, 8, 64};
    Turn turn;
    turn.thread = lane_of_this_thread();
    turn.weight = weights[1];
    if (options != nullptr) {
        turn.lane = options->lane != 0 ? 2 * options->lane : turn.thread;
        turn.weight = weights[std::min<std::size_t>(static_cast<std::size_t>(options->priority), 2)];
    }
    return turn;
}

void Schedule::add(WaitingList& one)
{
    Waiting& job = one.front();
    Lane& own = lanes_[job.turn.thread];
    Lane& lane = lanes_[job.turn.lane];
    job.sequence = ++sequence_;
    if (job.turn.lane == ordered) {
        job.behind = own.jobs.empty() ? 0 : own.jobs.back().sequence;
        own.last_ordered = job.sequence;
    } else if (job.turn.lane == job.turn.thread) {
        job.behind = own.last_ordered;
    }
    if (lane.jobs.empty()) {
        lane.used = std::max(lane.used, now_);
    }
    lane.jobs.splice(lane.jobs.end(), one);
    ++size_;
}

bool Schedule::may_go(const Waiting& job) const noexcept
{
    if (job.behind == 0) {
        return true;
    }
    const auto other = lanes_.find(job.turn.lane == ordered ? job.turn.thread : ordered);
    return other == lanes_.end() || passed(other->second.jobs, job.behind);
}

bool Schedule::next(WaitingList& out) noexcept
{
    // The job that came first of all never waits for another one, so there is one that may go.
    Lane* best = nullptr;
    for (auto& [key, lane] : lanes_) {
        if (lane.jobs.empty() || !may_go(lane.jobs.front())) {
            continue;
        }
        if (best == nullptr || lane.used < best->used ||
            (lane.used == best->used && lane.jobs.front().turn.weight > best->jobs.front().turn.weight)) {
            best = &lane;
        }
    }
    if (best == nullptr) {
        return false;
    }
    Turn& turn = best->jobs.front().turn;
    now_ = std::max(now_, best->used);
    turn.charged = best->expected;
    best->used += turn.charged / turn.weight;
    out.splice(out.end(), best->jobs, best->jobs.begin());
    --size_;
    forget_idle_lanes();
    return true;
}

void Schedule::take_if(WaitingList& out, const std::function<bool(const Waiting&)>& is_it) noexcept
{
    for (auto& [key, lane] : lanes_) {
        for (auto job = lane.jobs.begin(); job != lane.jobs.end();) {
            const auto after = std::next(job);
            if (is_it(*job)) {
                out.splice(out.end(), lane.jobs, job);
                --size_;
            }
            job = after;
        }
    }
}

Clock::time_point Schedule::first_deadline() const noexcept
{
    Clock::time_point first = Clock::time_point::max();
    for (const auto& [key, lane] : lanes_) {
        for (const Waiting& job : lane.jobs) {
            first = std::min(first, job.deadline);
        }
    }
    return first;
}

void Schedule::ran(const Turn& turn, double seconds) noexcept
{
    const auto lane = lanes_.find(turn.lane);
    if (lane == lanes_.end()) {
        return;
    }
    lane->second.used += (seconds - turn.charged) / turn.weight;
    lane->second.expected += (seconds - lane->second.expected) / 2;
}

void Schedule::forget_idle_lanes() noexcept
{
    constexpr std::size_t kept = 256;
    if (lanes_.size() <= kept) {
        return;
    }
    const auto first = lanes_.find(ordered);
    for (auto lane = lanes_.begin(); lane != lanes_.end();) {
        // What is before last_ordered has gone where the ordered lane is empty, or beyond it.
        const bool idle = lane->first != ordered && lane->second.jobs.empty() && lane->second.used <= now_ &&
                          (first == lanes_.end() || passed(first->second.jobs, lane->second.last_ordered));
        lane = idle ? lanes_.erase(lane) : std::next(lane);
    }
}

}  // namespace rmsp::engine
