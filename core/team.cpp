#include "core/team.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <system_error>

#include <strings.h>

#ifdef __GLIBC__
#include <execinfo.h>
#endif

namespace rmsp::core {

namespace {

constexpr int share_bits = 16;
constexpr std::uint64_t share_mask = (std::uint64_t{1} << share_bits) - 1;

}  // namespace

Team::~Team()
{
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) {
        thread.join();
    }
}

void Team::run(int n, bool wakes, Body body, const void* f)
{
    const bool divides = n > 1 && n <= most_shares;
    const bool wakes_all = wakes || more_follows_;
    if (divides && wakes_all) {
        make_threads(n - 1);
    }
    const bool all_sleep = asleep_.load() == static_cast<int>(threads_.size());
    if (!divides || threads_.empty() || (all_sleep && !wakes_all)) {
        for (int k = 0; k < n; ++k) {
            body(f, k);
        }
        return;
    }
    body_ = body;
    f_ = f;
    done_.store(0, std::memory_order_relaxed);
    const std::uint64_t state =
        (((state_.load(std::memory_order_relaxed) >> share_bits) + 1) << share_bits) | static_cast<std::uint64_t>(n);
    // In one order with what a thread does that goes to sleep: either it sees the work, or it is seen to sleep.
    state_.store(state);
    if (wakes_all && asleep_.load() > 0) {
        {
            const std::lock_guard lock(mutex_);
        }
        changed_.notify_all();
    }
    perform_all(state, 0);
    while (done_.load(std::memory_order_acquire) < n) {
        std::this_thread::yield();
    }
}

void Team::make_threads(int count)
{
    try {
        if (!begun_) {
            begun_ = std::make_unique<std::atomic<std::uint64_t>[]>(most_shares);
        }
        while (static_cast<int>(threads_.size()) < count) {
            const int own = static_cast<int>(threads_.size()) + 1;
            threads_.emplace_back([this, own] { help(own); });
        }
    } catch (const std::system_error&) {
        // The caller has the shares of those that there are not.
    } catch (const std::bad_alloc&) {
    }
}

bool Team::begin(int k, std::uint64_t work)
{
    std::atomic<std::uint64_t>& begun = begun_[static_cast<std::size_t>(k)];
    std::uint64_t last = begun.load(std::memory_order_relaxed);
    while (last < work) {
        if (begun.compare_exchange_weak(last, work, std::memory_order_acquire)) {
            return true;
        }
    }
    return false;
}

void Team::perform_all(std::uint64_t state, int own)
{
    const int n = static_cast<int>(state & share_mask);
    for (int i = 0; i < n; ++i) {
        const int k = (own + i) % n;
        if (begin(k, state >> share_bits)) {
            body_(f_, k);
            done_.fetch_add(1, std::memory_order_release);
        }
    }
}

void Team::help(int own)
{
    if (first_) {
        first_(own);
    }
    std::uint64_t seen = 0;
    while (true) {
        const auto is_there = [&] { return state_.load(std::memory_order_acquire) != seen; };
        if (team_may_wait_awake()) {
            wait_awake(true, is_there);
        }
        if (!is_there()) {
            std::unique_lock lock(mutex_);
            asleep_.fetch_add(1);
            changed_.wait(lock, [&] { return stopping_ || state_.load() != seen; });
            asleep_.fetch_sub(1);
            if (stopping_) {
                return;
            }
        }
        seen = state_.load(std::memory_order_acquire);
        perform_all(seen, own);
    }
}

bool team_may_wait_awake()
{
    static const bool may = [] {
        const char* const policy = std::getenv("OMP_WAIT_POLICY");
        return policy == nullptr || strcasecmp(policy, "passive") != 0;
    }();
    return may;
}

void make_ready_for_ends_of_teams()
{
#ifdef __GLIBC__
    void* frame = nullptr;
    errno = 0;
    if (::backtrace(&frame, 1) == 0 && errno == ENOMEM) {
        throw std::bad_alloc();
    }
#endif
}

}  // namespace rmsp::core
