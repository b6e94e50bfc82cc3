#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

/// Threads that share the loops of the one that they belong to: OpenMP's teams, which have one thread where it is not
/// compiled in, and a team that waits awake.
namespace rmsp::core {

/// The number of the calling thread in the team of a parallel region.
inline int thread_of_team()
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

/// How many threads a parallel region has that asks for no number.
inline int threads_of_team()
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

/// What threads_of_team() is from now on for the calling thread.
inline void set_threads_of_team([[maybe_unused]] int threads)
{
#ifdef _OPENMP
    omp_set_num_threads(threads);
#endif
}

/// Threads that share the work of the one that has made it, and wait awake for a moment afterwards. Where a process has
/// more threads than cores, and two pools are enough for that, OpenMP's runtime lets a team sleep within a microsecond,
/// which takes some 50 to wake: longer than a product of a small matrix. Of this one nobody waits for a thread that
/// sleeps: whoever is awake takes what others have not begun. Its threads may use the cores that the one that makes
/// them may, unless begin_with() says otherwise.
class Team {
public:
    Team() = default;
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    using Body = void (*)(const void* f, int k);
    /// body(f, k) once for 0 <= k < n, each by the k-th thread unless that comes too late; nothing may be thrown. Waits
    /// for all. `wakes`: it is worth waking those that sleep; without, they sleep on. Called by one thread alone.
    void run(int n, bool wakes, Body body, const void* f);
    /// What the k-th thread, from the first behind the caller's on, does before anything else. Before the first run().
    void begin_with(std::function<void(int k)> first) { first_ = std::move(first); }
    /// Whether work is worth waking threads for that is not by itself, since more of it follows.
    void set_more_follows(bool follows) noexcept { more_follows_ = follows; }

private:
    static constexpr int most_shares = 4096;

    void make_threads(int count);
    void help(int own);
    bool begin(int k, std::uint64_t work);
    void perform_all(std::uint64_t state, int own);

    /// The number of the work, and how many shares it has: both are read at once.
    std::atomic<std::uint64_t> state_{0};
    Body body_ = nullptr;
    const void* f_ = nullptr;
    alignas(64) std::atomic<int> done_{0};
    alignas(64) std::atomic<int> asleep_{0};
    /// Of each share, the number of the last work of which it was begun; most_shares of them.
    std::unique_ptr<std::atomic<std::uint64_t>[]> begun_;
    bool more_follows_ = false;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool stopping_ = false;
    std::function<void(int k)> first_;
    std::vector<std::thread> threads_;
};

/// The calling thread's own, which somebody else keeps; null: it has none. Not an object of the thread's: to have those
/// ended takes memory, and glibc aborts where there is none.
inline thread_local Team* own_team = nullptr;

/// f(k) for 0 <= k < n: by the calling thread's team, if that is awake or it is worth waking it; without one by
/// OpenMP's.
template <class F>
void share(int n, bool worth_waking, const F& f)
{
    if (n <= 1) {
        for (int k = 0; k < n; ++k) {
            f(k);
        }
        return;
    }
    if (own_team != nullptr) {
        own_team->run(
            n, worth_waking, [](const void* of, int k) { (*static_cast<const F*>(of))(k); }, &f);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel for num_threads(n) schedule(static, 1) if (worth_waking)
#endif
    for (int k = 0; k < n; ++k) {
        f(k);
    }
}

/// f(begin, end) for ranges of 0 <= i < n, one for each of so many threads that has `least` of them to do.
template <class F>
void share_ranges(std::int64_t n, int threads, std::int64_t least, bool worth_waking, const F& f)
{
    const std::int64_t parts = std::clamp<std::int64_t>(n / least, 1, std::max(threads, 1));
    share(static_cast<int>(parts), worth_waking, [&](std::int64_t p) {
        f(n / parts * p + std::min(p, n % parts), n / parts * (p + 1) + std::min(p + 1, n % parts));
    });
}

/// For so long threads wait awake: whoever waits for each of his calls comes back within microseconds, while a wake-up
/// costs tens of them.
inline constexpr std::chrono::microseconds awake{50};
/// Waits until is_there(), or for a moment. `yields`: what is waited for may need the core.
template <class IsThere>
void wait_awake(bool yields, const IsThere& is_there)
{
    const auto end = std::chrono::steady_clock::now() + awake;
    while (!is_there() && std::chrono::steady_clock::now() < end) {
        if (yields) {
            std::this_thread::yield();
        }
    }
}

/// Whether threads may wait awake: OMP_WAIT_POLICY=passive forbids it.
bool team_may_wait_awake();

/// Once in a process is enough: the threads of a team end by pthread_exit(), for which glibc loads libgcc_s the first
/// time, and aborts where there is no memory left for that. backtrace() needs the same.
/// \throws std::bad_alloc if there is none now
void make_ready_for_ends_of_teams();

}  // namespace rmsp::core
