#include "runtime/engine/rendezvous.hpp"

#include <rmsp/error.hpp>

namespace rmsp::engine {
namespace {

// Workers of one job arrive within microseconds of each other when they run in step; sleeping would cost more than
// that.
constexpr int spins_before_sleep = 20000;

[[noreturn]] void throw_failed() { throw Error(ErrorCode::device, "another device failed in the same job"); }

}  // namespace

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
    const std::uint32_t round = round_.load(std::memory_order_acquire);
    if (failed_.load(std::memory_order_acquire)) {
        return;
    }
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
        arrived_.store(0, std::memory_order_relaxed);
        round_.fetch_add(1, std::memory_order_release);
        round_.notify_all();
    } else {
        int spins = 0;
        while (round_.load(std::memory_order_acquire) == round) {
            if (++spins >= spins_before_sleep) {
                round_.wait(round, std::memory_order_acquire);
            }
        }
    }
}

void Rendezvous::fail() noexcept
{
    failed_.store(true, std::memory_order_release);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
}

}  // namespace rmsp::engine
