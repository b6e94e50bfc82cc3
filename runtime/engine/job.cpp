#include "runtime/engine/job.hpp"

#include <utility>

namespace rmsp::engine {

void Job::heed(const JobOptions& options, std::function<void()> stopped)
{
    condition_.emplace(StopCondition{options.stop, options.deadline});
    if (options.stop.stop_possible()) {
        on_stop_.emplace(options.stop, std::move(stopped));
    }
}

void Job::begin(std::uint64_t number, std::uint64_t ticket) noexcept
{
    ticket_ = ticket;
    meeting_.begin(number, condition());
}

bool Job::goes_on() noexcept
{
    if (!condition_) {
        return true;
    }
    int verdict = verdict_.load(std::memory_order_acquire);
    if (verdict == 0) {
        const int found = condition_->holds() ? -1 : 1;
        verdict = verdict_.compare_exchange_strong(verdict, found) ? found : verdict;
    }
    return verdict > 0;
}

void Job::fail(std::exception_ptr error) noexcept
{
    {
        std::lock_guard lock(mutex_);
        if (!error_) {
            error_ = std::move(error);
        }
    }
    meeting_.fail();
    if (failed_) {
        failed_(meeting_.job());
    }
}

std::exception_ptr Job::finish() noexcept
{
    std::exception_ptr error;
    {
        std::lock_guard lock(mutex_);
        error = std::exchange(error_, nullptr);
    }
    if (!error && finish_) {
        try {
            finish_();
        } catch (...) {
            error = std::current_exception();
        }
    }
    let_go();
    return error;
}

void Job::let_go() noexcept
{
    body_ = nullptr;
    finish_ = nullptr;
}

void Job::settle(std::exception_ptr error) noexcept
{
    if (error) {
        promise_.set_exception(std::move(error));
    } else {
        promise_.set_value();
    }
}

}  // namespace rmsp::engine
