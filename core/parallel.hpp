#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <string_view>

#ifdef _OPENMP
#include <omp.h>
#endif

#include <rmsp/error.hpp>
#include <rmsp/io.hpp>

#include "core/process.hpp"

namespace rmsp::core {

/// OpenMP's runtime ends the process where it cannot start a thread, so what no machine has is refused before.
inline constexpr int most_threads = 4096;

/// Steps of a loop over entries, from which a team of threads makes up for the time that it takes to wake (some 50 us).
inline constexpr std::int64_t least_parallel = 65536;

/// Threads that a request means: 0 is every thread that OpenMP would use, which is the process's cpuset.
/// \throws Error(usage) for a negative number, or more than most_threads, and as require_own_process()
inline int thread_count(int requested)
{
    if (requested < 0) {
        throw Error(ErrorCode::usage, "a reader cannot run on " + std::to_string(requested) + " threads");
    }
    require_own_process();
#ifdef _OPENMP
    const int threads = requested > 0 ? requested : omp_get_max_threads();
    if (threads > most_threads) {
        throw Error(ErrorCode::usage, std::to_string(threads) + " threads are more than " +
                                          std::to_string(most_threads) + "; OMP_NUM_THREADS may ask for them");
    }
    return threads;
#else
    return 1;
#endif
}

/// Calls body(i) for 0 <= i < n; tasks start in order and are handed out one by one. If some throw, the exception of
/// the smallest i is rethrown, so that the same error is reported on any number of threads; tasks after it may be left
/// out.
template <class F>
void parallel_for([[maybe_unused]] int threads, std::int64_t n, F&& body)
{
    std::atomic<std::int64_t> failed{std::numeric_limits<std::int64_t>::max()};
    std::exception_ptr error;
    std::mutex mutex;
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (n > 1)
#endif
    for (std::int64_t i = 0; i < n; ++i) {
        if (i > failed.load(std::memory_order_relaxed)) {
            continue;
        }
        try {
            body(i);
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (i < failed.load(std::memory_order_relaxed)) {
                failed.store(i, std::memory_order_relaxed);
                error = std::current_exception();
            }
        }
    }
    if (error) {
        std::rethrow_exception(error);
    }
}

/// Counts finished work of one phase and passes it on. advance() may be called from any thread.
class ProgressMeter {
public:
    ProgressMeter(const Progress& progress, std::string_view phase, std::int64_t total)
        : progress_(progress), phase_(phase), total_(total)
    {
    }

    void advance(std::int64_t amount)
    {
        if (!progress_) {
            return;
        }
        const std::int64_t done = done_.fetch_add(amount, std::memory_order_relaxed) + amount;
        const std::lock_guard lock(mutex_);
        if (done > reported_) {  // another thread may have reported more meanwhile
            reported_ = done;
            progress_(phase_, total_ > 0 ? static_cast<double>(done) / static_cast<double>(total_) : 1.0);
        }
    }

private:
    const Progress& progress_;
    std::string_view phase_;
    std::int64_t total_;
    std::int64_t reported_ = 0;
    std::atomic<std::int64_t> done_{0};
    std::mutex mutex_;
};

}  // namespace rmsp::core
