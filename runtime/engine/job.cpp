#include "runtime/engine/job.hpp"

#include <utility>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/log.hpp"

namespace rmsp::engine {
namespace {

/// How a job ended with that error, and its text on one line.
std::string error_fields(const std::exception_ptr& error)
{
    const auto fields = [](const char* outcome, std::string text) {
        for (char& c : text) {
            c = c == '"' ? '\'' : c == '\n' ? ' ' : c;
        }
        return fmt::format(" outcome={} error=\"{}\"", outcome, text);
    };
    try {
        std::rethrow_exception(error);
    } catch (const Error& e) {
        return fields(e.code() == ErrorCode::cancelled  ? "cancelled"
                      : e.code() == ErrorCode::deadline ? "expired"
                                                        : "failed",
                      e.what());
    } catch (const std::exception& e) {
        return fields("failed", e.what());
    } catch (...) {
        return fields("failed", "");
    }
}

}  // namespace

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
    return error;
}

void Job::log_end(const std::exception_ptr& error) const noexcept
{
    if (core::logs_debug()) {
        log(error ? "" : " outcome=finished", error);
    }
}

void Job::log_failure(const DeviceInfo& device, const std::exception_ptr& error) const noexcept
{
    if (core::logs_debug()) {
        try {
            log(fmt::format(" device=\"{}\"", label_of(device)), error);
        } catch (const std::exception&) {
            // For lack of memory.
        }
    }
}

void Job::log(const std::string& what, const std::exception_ptr& error) const noexcept
{
    try {
        std::string line = fmt::format("job={} kind=\"{}\"", id, terms_.kind);
        if (terms_.matrix != nullptr && !terms_.matrix->empty()) {
            line += fmt::format(" matrix=\"{}\"", *terms_.matrix);
        }
        line += what;
        if (error) {
            line += error_fields(error);
        }
        core::log_debug(line);
    } catch (const std::exception&) {
        // A log that cannot be written is no reason to fail.
    }
}

void Job::let_go() noexcept
{
    body_ = nullptr;
    finish_ = nullptr;
}

void Job::leave(const std::exception_ptr& error) noexcept
{
    fail(error);
    if (terms_.owns_all) {
        settle(error);
    }
}

void Job::settle(std::exception_ptr error) noexcept
{
    if (settled_.exchange(true, std::memory_order_acq_rel)) {
        return;
    }
    if (error) {
        promise_.set_exception(std::move(error));
    } else {
        promise_.set_value();
    }
}

}  // namespace rmsp::engine
