#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include <rmsp/ghosted.hpp>

namespace rmsp::sequence {

/// What workers ask of other processes. The thread that called librmsp says it where only that one is allowed to speak
/// (MPI_THREAD_FUNNELED), and serves while a job runs. Else the worker says it itself: only one of them ever does.
class Outside {
public:
    explicit Outside(std::shared_ptr<Processes> processes)
        : processes_(std::move(processes)), on_workers_(processes_->on_workers())
    {
    }

    /// On a worker: has f() called, of which nothing is waited for; what it throws the next ask() throws.
    void post(std::function<void()> f);
    /// On a worker: returns when f(), and all that was posted before, has been called. \throws what they threw
    void ask(const std::function<void()>& f);
    /// On a worker: sums over the processes. \throws what Processes::sum() throws
    void sum(std::span<double> numbers)
    {
        ask([&] { processes_->sum(numbers); });
    }
    /// On a worker: begins such a sum of numbers that stay where they are; what else is asked or posted goes on beside
    /// it. One at a time. \throws what Processes::begin_sum() throws, or end_sum() does
    void begin_sum(std::span<double> numbers)
    {
        if (on_workers_) {
            processes_->begin_sum(numbers);
        } else {
            post([this, numbers] { processes_->begin_sum(numbers); });
        }
    }
    /// On a worker: returns when the sums are there. \throws what they threw
    void end_sum()
    {
        ask([&] { processes_->end_sum(); });
    }
    /// As Processes::gathers_on_devices(), where workers speak themselves; 0 otherwise.
    int gathers() const { return on_workers_ ? processes_->gathers_on_devices() : 0; }
    /// On the first worker, where gathers() is above 0.
    void gather_on(std::span<const DeviceArrays> devices, std::size_t count)
    {
        under_way_ = true;
        ask([&] { processes_->gather_on(devices, count); });
    }
    /// On the first worker: asks for what begins an exchange. Returns whether settle() has to end it.
    bool exchange_on(GhostExchange& exchange, std::span<const DeviceArrays> devices, bool backwards)
    {
        bool in_order = false;
        ask([&] {
            exchange.begin_on(devices, backwards);
            in_order = exchange.in_stream_order();
        });
        under_way_ = under_way_ || in_order;
        return in_order;
    }
    /// On the first worker, before it or others wait for their devices, and at the end of its job: returns when all
    /// that was gathered or exchanged is there. \throws what Processes::settle() throws
    void settle()
    {
        if (std::exchange(under_way_, false)) {
            ask([this] { processes_->settle(); });
        }
    }
    /// settle() where the job has failed: of what waiting throws nothing is to be told.
    void settle_failed() noexcept;
    /// On the caller's thread: what the first process has.
    double of_first(double value) { return processes_->of_first(value); }
    /// On the caller's thread, of every process: the sum of their values.
    double total(double value)
    {
        processes_->sum({&value, 1});
        return value;
    }
    /// On the caller's thread, of every process: the least that a sum takes, as the first process finds it.
    double sum_seconds();
    /// On the caller's thread: does what workers ask until the job is done. Leaves the job's error in the future.
    void serve(const std::future<void>& job);

private:
    struct Errand {
        std::function<void()> f;
        bool* done = nullptr;  ///< of who waits for it
    };

    /// Calls the next one, if there is one.
    bool serve_one();

    const std::shared_ptr<Processes> processes_;
    const bool on_workers_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Errand> errands_;
    std::exception_ptr error_;  ///< of an errand, until an ask() throws it
    bool under_way_ = false;    ///< the first worker's: since settle()
};

}  // namespace rmsp::sequence
