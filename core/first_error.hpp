#pragma once

#include <exception>
#include <mutex>
#include <utility>

namespace rmsp::core {

/// Brings an exception out of an OpenMP region, which none may leave by itself: guard() what may throw inside,
/// rethrow() behind it.
class FirstError {
public:
    /// Calls f. From any thread.
    template <class F>
    void guard(F&& f) noexcept
    {
        try {
            std::forward<F>(f)();
        } catch (...) {
            const std::lock_guard lock(mutex_);
            if (!error_) {
                error_ = std::current_exception();
            }
        }
    }
    /// Throws one of the exceptions that were met, if there were any.
    void rethrow() const
    {
        if (error_) {
            std::rethrow_exception(error_);
        }
    }

private:
    std::mutex mutex_;
    std::exception_ptr error_;
};

}  // namespace rmsp::core
