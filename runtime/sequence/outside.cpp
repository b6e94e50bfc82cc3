#include "runtime/sequence/outside.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

namespace rmsp::sequence {

void Outside::post(std::function<void()> f)
{
    if (on_workers_) {
        error_ = nullptr;  // of a job that ended without asking for it
        try {
            f();
        } catch (...) {
            error_ = std::current_exception();
        }
        return;
    }
    std::lock_guard lock(mutex_);
    errands_.push_back({std::move(f), nullptr});
    changed_.notify_all();
}

void Outside::ask(const std::function<void()>& f)
{
    if (on_workers_) {
        if (error_) {
            std::rethrow_exception(std::exchange(error_, nullptr));
        }
        f();
        return;
    }
    bool done = false;
    std::unique_lock lock(mutex_);
    errands_.push_back({f, &done});
    changed_.notify_all();
    changed_.wait(lock, [&] { return done; });
    if (error_) {
        std::rethrow_exception(std::exchange(error_, nullptr));
    }
}

void Outside::settle_failed() noexcept
{
    try {
        settle();
    } catch (...) {
        // The job's own error is the one to tell.
    }
}

bool Outside::serve_one()
{
    Errand errand;
    {
        std::lock_guard lock(mutex_);
        if (errands_.empty()) {
            return false;
        }
        errand = std::move(errands_.front());
        errands_.pop_front();
        if (error_) {
            errand.f = nullptr;  // what comes after an error is not begun
        }
    }
    std::exception_ptr error;
    try {
        if (errand.f) {
            errand.f();
        }
    } catch (...) {
        error = std::current_exception();
    }
    std::lock_guard lock(mutex_);
    if (error) {
        error_ = error;
    }
    if (errand.done != nullptr) {
        *errand.done = true;
        changed_.notify_all();
    }
    return true;
}

double Outside::sum_seconds()
{
    constexpr int turns = 10;
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < turns; ++i) {
        double numbers[3] = {};
        const auto began = std::chrono::steady_clock::now();
        processes_->sum(numbers);
        least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    }
    return of_first(least);
}

void Outside::serve(const std::future<void>& job)
{
    if (on_workers_) {
        job.wait();
        return;
    }
    {
        std::lock_guard lock(mutex_);
        error_ = nullptr;  // of a job that ended without asking for it
    }
    // An errand is heard of at once, also after a while of waiting in vain; the end of the job a little later then. A
    // while is time, not turns: where others want the core, each turn may last milliseconds.
    constexpr auto soon = std::chrono::microseconds(20);
    constexpr auto a_while = std::chrono::microseconds(50);
    auto idle_since = std::chrono::steady_clock::now();
    while (true) {
        const bool ended = job.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
        while (serve_one()) {
            idle_since = std::chrono::steady_clock::now();
        }
        if (ended) {
            return;
        }
        processes_->progress();
        if (std::chrono::steady_clock::now() - idle_since < soon) {
            std::this_thread::yield();
        } else {
            std::unique_lock lock(mutex_);
            changed_.wait_for(lock, a_while, [&] { return !errands_.empty(); });
        }
    }
}

}  // namespace rmsp::sequence
