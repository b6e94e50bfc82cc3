#include "runtime/engine/job_queue.hpp"

#include <algorithm>
#include <bit>
#include <system_error>

#include <fmt/format.h>

#include "runtime/engine/trace.hpp"

namespace rmsp::engine {
namespace {

double seconds_of(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

void note(TimeHistogram& histogram, Clock::duration time)
{
    const auto ns = std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
    const auto bucket = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(ns) / 1000));
    ++histogram.counts[std::min(bucket, TimeHistogram::buckets - 1)];
    ++histogram.count;
    histogram.sum_seconds += static_cast<double>(ns) * 1e-9;
}

ErrorCode code_of(const std::exception_ptr& error)
{
    try {
        std::rethrow_exception(error);
    } catch (const Error& e) {
        return e.code();
    } catch (...) {
        return ErrorCode::internal;
    }
}

/// The counter of jobs that ended so.
std::uint64_t& counter_of(Metrics& metrics, ErrorCode why)
{
    return why == ErrorCode::cancelled  ? metrics.cancelled
           : why == ErrorCode::deadline ? metrics.expired
                                        : metrics.failed;
}

}  // namespace

JobQueue::JobQueue(std::span<const std::unique_ptr<Worker>> workers, bool shared_memory,
                   std::function<void(std::uint64_t)> failed, bool one_at_a_time, std::int64_t limit)
    : workers_(workers),
      shared_memory_(shared_memory),
      failed_(std::move(failed)),
      one_at_a_time_(one_at_a_time),
      limit_(limit),
      busy_(std::make_unique<Busy[]>(workers.size()))
{
    if (limit_ > 0) {
        begin_lanes(opened_);
    }
}

JobQueue::~JobQueue()
{
    drain();
    {
        std::lock_guard lock(mutex_);
        watching_ = false;
    }
    deadline_set_.notify_all();
    if (watch_.joinable()) {
        watch_.join();
    }
}

std::future<void> JobQueue::submit(Job::Body body, std::function<void()> finish, const JobTerms& terms)
{
    // All that can fail comes first: once a worker has its part, the others must get theirs, and a ticket that was
    // counted must be given back.
    const auto job = std::make_shared<Job>(static_cast<int>(workers_.size()), terms, std::move(body), std::move(finish),
                                           failed_, one_at_a_time_ ? &turn_ : nullptr);
    auto future = job->future();
    Tasks parts(workers_.size());
    std::size_t rank = 0;
    for (Task& part : parts) {
        part.brief = terms.brief;
        part.run.set([this, job](Worker& worker) { run(*job, worker); });
        part.done.set([this, job, rank](std::exception_ptr error) {
            Worker& worker = *workers_[rank];
            if (error) {
                fail(*job, worker, std::move(error));
            }
            complete(*job, worker);
        });
        ++rank;
    }
    const JobOptions* const options = JobScope::current();
    const Given given = options != nullptr ? Given::not_yet : give_without_lanes(*job, parts);
    if (given == Given::not_yet) {
        accept(job, parts, options);
    } else if (given == Given::to_this_thread) {
        workers_.front()->perform_here(parts);
    }
    return future;
}

JobQueue::Given JobQueue::give_without_lanes(Job& job, Tasks& parts) noexcept
{
    // One lock over all queues: every worker sees the jobs in the same order, so meetings inside them cannot deadlock.
    const std::lock_guard lock(mutex_);
    if (has_lanes()) {
        return Given::not_yet;
    }
    job.id = ++metrics_.accepted;
    // One with the caller's arrays waits for the jobs before it, whose ends the worker's thread alone hears of.
    const bool by_anyone = job.terms().only_queues && !job.terms().host_data;
    if (by_anyone && workers_.size() == 1 && workers_.front()->try_take_place()) {
        begin(job);
        return Given::to_this_thread;
    }
    post(job, parts);
    return Given::to_workers;
}

void JobQueue::accept(const std::shared_ptr<Job>& job, Tasks& parts, const JobOptions* options)
{
    const bool may_end = options != nullptr && job->terms().may_end_early;
    const auto deadline = may_end ? options->deadline : never;
    if (may_end) {
        job->heed(*options, [this, which = job.get()] { stop(*which); });
    }
    job->turn = turn_of(options);
    job->accepted = Clock::now();
    WaitingList one(1);
    one.front().deadline = deadline;
    one.front().turn = job->turn;
    one.front().parts = std::move(parts);
    one.front().job = job;

    std::unique_lock lock(mutex_);
    begin_lanes(job->accepted);
    const auto unwanted = [&] { return may_end && job->condition()->holds(); };
    const auto goes_on = [&] { return closed_ || has_room() || unwanted() || !stands_still_.empty(); };
    if (!goes_on()) {
        if (options != nullptr && options->when_full == WhenFull::refuse) {
            ++metrics_.refused;
            throw Error(ErrorCode::busy, fmt::format("the queue is full: {} jobs wait, and RuntimeOptions::queue_limit "
                                                     "is {}",
                                                     schedule_.size(), limit_));
        }
        if (deadline != never) {
            changed_.wait_until(lock, deadline, goes_on);
        } else {
            changed_.wait(lock, goes_on);
        }
    }
    if (closed_) {
        throw Error(ErrorCode::usage, "the rmsp::Runtime that this object belongs to has been destroyed, or drained");
    }
    if (unwanted()) {
        ++metrics_.refused;
        throw job->condition()->error();
    }
    if (!stands_still_.empty()) {
        ++metrics_.refused;
        throw Error(ErrorCode::device, stands_still_);
    }
    if (may_end && job->condition()->possible()) {
        start_watch();
    }
    job->id = metrics_.accepted + 1;
    if (schedule_.empty() && takes_more(job->accepted)) {
        give(one, job->accepted);
    } else {
        watch(deadline);
        schedule_.add(one);
        dispatch(job->accepted);
    }
    ++metrics_.accepted;
}

void JobQueue::begin_lanes(Clock::time_point now) noexcept
{
    if (!has_lanes()) {
        // How long the workers have been at what they have is not known: they get more once they are done with one.
        lanes_begin_ = last_done_ = now;
        ended_.fetch_or(with_lanes, std::memory_order_seq_cst);
    }
}

bool JobQueue::has_room() const noexcept { return limit_ == 0 || static_cast<std::int64_t>(schedule_.size()) < limit_; }

bool JobQueue::takes_more(Clock::time_point now) const noexcept
{
    // One that the workers do and one that follows at once; of short ones more, so that GPUs always have work queued
    // while the host hears of what is done. What the workers have can neither be overtaken nor cancelled.
    constexpr std::int64_t most = 256;
    const double most_seconds = shared_memory_ ? 0.5e-3 : 5e-3;
    return running() < 2 || (running() < most && static_cast<double>(running()) * typical_ < most_seconds &&
                             seconds_of(now - progress_) < most_seconds);
}

void JobQueue::dispatch(Clock::time_point now) noexcept
{
    WaitingList next;
    while (takes_more(now) && schedule_.next(next)) {
        next.front().job->turn = next.front().turn;
        give(next, now);
        changed_.notify_all();
    }
}

void JobQueue::give(WaitingList& one, Clock::time_point now) noexcept
{
    Waiting& waiting = one.front();
    Job& job = *waiting.job;
    job.given = now;
    note(metrics_.wait, now - job.accepted);
    if (running() == 0) {
        progress_ = std::max(progress_, now);
    }
    // What may have ended a job that waits gives one that runs some more time.
    waiting.deadline = waiting.deadline < never - end_patience ? waiting.deadline + end_patience : never;
    watch(waiting.deadline);
    running_.splice(running_.end(), one);
    watch(next_look());
    post(job, waiting.parts);
}

void JobQueue::post(Job& job, Tasks& parts) noexcept
{
    begin(job);
    for (const auto& worker : workers_) {
        worker->post(parts);
    }
}

void JobQueue::begin(Job& job) noexcept { job.begin(++jobs_, job.terms().host_data ? ++host_tickets_ : 0); }

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
        if (worker.device().lost()) {
            if (worker.rank() >= job.terms().devices) {
                job.meeting().leave();
                return;
            }
            worker.device().require();
        }
        if (!job.goes_on()) {
            throw job.condition()->error();
        }
        std::unique_lock turn(turn_, std::defer_lock);
        if (one_at_a_time_) {
            turn.lock();
        }
        if (shared_memory_) {
            job.meeting().arrive_and_wait();
        }
        worker.device().draw_from(job.terms().reservation.get());
        const TraceRange range(job.terms().kind, job.id);
        job.body()(worker, job.meeting());
    } catch (...) {
        fail(job, worker, std::current_exception());
    }
    worker.device().draw_from(nullptr);
}

void JobQueue::fail(Job& job, Worker& worker, std::exception_ptr error) noexcept
{
    error = worker.device().explain(std::move(error));
    job.log_failure(worker.device().info(), error);
    job.fail(std::move(error));
}

void JobQueue::complete(Job& job, Worker& worker) noexcept
{
    Clock::time_point now{};
    if (ended_.load(std::memory_order_acquire) & with_lanes) {
        now = Clock::now();
        Busy& busy = busy_[static_cast<std::size_t>(worker.rank())];
        const auto spent = now - std::max({busy.until, job.given, lanes_begin_});
        busy.nanoseconds.fetch_add(std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count(),
                                   std::memory_order_relaxed);
        busy.until = now;
        job.note_done(worker.rank());
    }
    if (!job.complete_one()) {
        return;
    }
    const std::exception_ptr error = job.finish();
    job.log_end(error);
    job.let_go();
    if (job.ticket() != 0) {
        host_done_.store(job.ticket(), std::memory_order_release);
        host_done_.notify_all();
    }
    // Not under the lock: it waits for a call that takes it.
    job.heed_no_more();
    if (error || job.terms().streamed_bytes != 0 || !count_as_ended()) {
        account(job, error, now == Clock::time_point{} ? Clock::now() : now);
    }
    // Last: whoever waits for the job may end the queue.
    job.settle(error);
}

bool JobQueue::count_as_ended() noexcept
{
    // In one step with the question whether anybody looks: the queue may be gone once its last job was counted.
    std::uint64_t ended = ended_.load(std::memory_order_relaxed);
    while ((ended & with_lanes) == 0) {
        if (ended_.compare_exchange_weak(ended, ended + one_ended, std::memory_order_seq_cst)) {
            return true;
        }
    }
    return false;
}

void JobQueue::account(const Job& job, const std::exception_ptr& error, Clock::time_point now) noexcept
{
    std::lock_guard lock(mutex_);
    if (error) {
        ++counter_of(metrics_, code_of(error));
        ++failed_jobs_;
    } else {
        metrics_.streamed_bytes += static_cast<std::uint64_t>(job.terms().streamed_bytes);
    }
    ended_.fetch_add(one_ended, std::memory_order_seq_cst);
    if (!has_lanes()) {
        return;
    }
    const auto is_it = [&](const Waiting& other) { return other.job.get() == &job; };
    if (const auto at = std::find_if(running_.begin(), running_.end(), is_it); at != running_.end()) {
        running_.erase(at);  // who calls this holds the job
    }
    stands_still_.clear();
    abandoned_ = false;
    if (job.given != Clock::time_point{}) {
        const auto took = now - std::max(last_done_, job.given);
        note(metrics_.run, took);
        schedule_.ran(job.turn, std::max(0.0, seconds_of(took)));
        typical_ = std::max(seconds_of(took), 0.9 * typical_);
    }
    last_done_ = std::max(last_done_, now);
    progress_ = std::max(progress_, now);
    dispatch(now);
    if (running() == 0) {
        changed_.notify_all();
    }
}

std::int64_t JobQueue::end_waiting(const std::function<bool(const Waiting&)>& is_it, ErrorCode why,
                                   const std::string& words) noexcept
{
    WaitingList ended;
    {
        std::lock_guard lock(mutex_);
        schedule_.take_if(ended, is_it);
        counter_of(metrics_, why) += ended.size();
        changed_.notify_all();
    }
    for (const Waiting& waiting : ended) {
        waiting.job->heed_no_more();
        const std::exception_ptr own = error_ptr([&] { return words.empty() ? ended_early(why) : Error(why, words); });
        waiting.job->log_end(own);
        waiting.job->let_go();
        waiting.job->settle(own);
    }
    return static_cast<std::int64_t>(ended.size());
}

void JobQueue::close() noexcept
{
    std::lock_guard lock(mutex_);
    begin_lanes(Clock::now());
    closed_ = true;
    changed_.notify_all();
}

std::int64_t JobQueue::drain(Clock::time_point until) noexcept
{
    close();
    const auto ended = [this] { return abandoned_ || (running() == 0 && schedule_.empty()); };
    std::unique_lock lock(mutex_);
    if (until != never && !changed_.wait_until(lock, until, ended)) {
        lock.unlock();
        const std::int64_t cancelled = end_waiting([](const Waiting&) { return true; }, ErrorCode::cancelled);
        lock.lock();
        changed_.wait(lock, ended);
        return cancelled;
    }
    changed_.wait(lock, ended);
    return 0;
}

bool JobQueue::idle()
{
    std::lock_guard lock(mutex_);
    return running() == 0 && schedule_.empty();
}

Metrics JobQueue::metrics()
{
    const auto now = Clock::now();
    std::lock_guard lock(mutex_);
    begin_lanes(now);
    Metrics metrics = metrics_;
    metrics.finished = ended_.load(std::memory_order_relaxed) / one_ended - failed_jobs_;
    metrics.seconds = seconds_of(now - opened_);
    metrics.waiting = static_cast<std::int64_t>(schedule_.size());
    metrics.running = running();
    metrics.devices.resize(workers_.size());
    for (std::size_t i = 0; i < workers_.size(); ++i) {
        DeviceMetrics& device = metrics.devices[i];
        device.busy_seconds = static_cast<double>(busy_[i].nanoseconds.load(std::memory_order_relaxed)) * 1e-9;
        const double seconds = seconds_of(now - lanes_begin_);
        device.busy_share = seconds > 0 ? device.busy_seconds / seconds : 0;
        device.lost = workers_[i]->device().lost();
    }
    return metrics;
}

}  // namespace rmsp::engine
