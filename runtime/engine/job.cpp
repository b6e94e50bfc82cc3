#include "runtime/engine/job.hpp"

#include <utility>

#include <rmsp/error.hpp>

namespace rmsp::engine {

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

void Job::complete_one(std::atomic<std::uint64_t>& done) noexcept
{
    if (remaining_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
        return;
    }
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
    // Whatever the closures hold (matrices, vectors) is let go before the caller sees the job as done.
    body_ = nullptr;
    finish_ = nullptr;
    if (ticket_ != 0) {
        done.store(ticket_, std::memory_order_release);
        done.notify_all();
    }
    if (error) {
        promise_.set_exception(std::move(error));
    } else {
        promise_.set_value();
    }
}

std::future<void> JobQueue::submit(Job::Body body, std::function<void()> finish, bool host_data)
{
    // One lock over all queues: every worker sees the jobs in the same order, so meetings inside them cannot deadlock.
    std::lock_guard lock(mutex_);
    if (closed_) {
        throw Error(ErrorCode::usage, "the rmsp::Runtime that this object belongs to has been destroyed");
    }
    // All that can fail comes first: once a worker has its part, the others must get theirs, and a ticket that was
    // counted must be given back.
    const std::uint64_t ticket = host_data ? host_tickets_ + 1 : 0;
    const auto job = std::make_shared<Job>(static_cast<int>(workers_.size()), jobs_ + 1, ticket, std::move(body),
                                           std::move(finish), failed_, one_at_a_time_ ? &turn_ : nullptr);
    auto future = job->future();
    Tasks parts(workers_.size());
    for (Task& part : parts) {
        part.run.set([this, job](Worker& worker) { run(*job, worker); });
        part.done.set([this, job](std::exception_ptr error) {
            if (error) {
                job->fail(std::move(error));
            }
            job->complete_one(host_done_);
        });
    }
    ++jobs_;
    host_tickets_ += host_data ? 1 : 0;
    for (const auto& worker : workers_) {
        worker->post(parts);
    }
    return future;
}

void JobQueue::run(Job& job, Worker& worker) noexcept
{
    try {
        if (job.ticket() != 0) {
            // Own completions first: the job before may be waiting for this worker to notice that it is done.
            worker.drain();
            std::uint64_t done = host_done_.load(std::memory_order_acquire);
            while (done + 1 < job.ticket()) {
                host_done_.wait(done, std::memory_order_acquire);
                done = host_done_.load(std::memory_order_acquire);
            }
        }
        std::unique_lock turn(turn_, std::defer_lock);
        if (one_at_a_time_) {
            turn.lock();
        }
        if (shared_memory_) {
            job.meeting().arrive_and_wait();
        }
        job.body()(worker, job.meeting());
    } catch (...) {
        job.fail(std::current_exception());
    }
}

void JobQueue::close()
{
    std::lock_guard lock(mutex_);
    closed_ = true;
}

}  // namespace rmsp::engine
