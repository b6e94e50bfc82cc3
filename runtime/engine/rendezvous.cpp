#include "runtime/engine/rendezvous.hpp"

#include <thread>

#include <rmsp/error.hpp>

namespace rmsp::engine {
namespace {

// Workers of one job arrive within microseconds of each other when they run in step; sleeping would cost more than
// that.
constexpr int spins_before_sleep = 20000;

// Where cores are fewer than workers, one that spins holds the core of one that is waited for.
int spins_of(std::uint32_t workers)
{
    static const unsigned cores = std::thread::hardware_concurrency();
    return cores != 0 && workers > cores ? 0 : spins_before_sleep;
}

[[noreturn]] void throw_failed() { throw GaveWay(); }

}  // namespace

Error ended_early(ErrorCode why)
{
    return why == ErrorCode::deadline ? Error(why,
                                              "the job's deadline passed before it was done: its results are "
                                              "unspecified")
                                      : Error(why, "the job was cancelled: its results are unspecified");
}

Error StopCondition::error() const
{
    return ended_early(stop.stop_requested() ? ErrorCode::cancelled : ErrorCode::deadline);
}

void Rendezvous::arrive_and_wait()
{
    if (turn_ != nullptr) {
        turn_->unlock();
    }
    wait_for_all();
    if (turn_ != nullptr) {
        turn_->lock();
    }
    if (failed_.load(std::memory_order_acquire)) {
        throw_failed();
    }
}

void Rendezvous::wait_for_all()
{
    // In this order: fail() ends the round that was read, or was seen to have failed.
    const std::uint32_t round = round_.now();
    if (failed_.load(std::memory_order_acquire)) {
        return;
    }
    // Sequentially consistent with leave(): one of both sees the other, and ends the round.
    const std::uint32_t arrived = arrived_.fetch_add(1) + 1;
    if (arrived == count_.load()) {
        end_round(arrived);
    }
    for (int spins = spins_of(count_.load()); round_.now() == round;) {
        if (--spins < 0) {
            round_.wait_past(round);
        }
    }
}

void Rendezvous::end_round(std::uint32_t count) noexcept
{
    // Once, whoever comes first. The next round begins behind it.
    if (count > 0 && arrived_.compare_exchange_strong(count, 0)) {
        round_.advance();
    }
}

void Rendezvous::leave() noexcept { end_round(count_.fetch_sub(1) - 1); }

void Rendezvous::fail() noexcept
{
    failed_.store(true, std::memory_order_release);
    round_.advance();
}

}  // namespace rmsp::engine
