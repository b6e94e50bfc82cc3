#pragma once

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#ifdef _OPENMP
#include <omp.h>
#endif

/// OpenMP's teams, which have one thread where it is not compiled in.
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

/// The calling thread's team, as far as its last task made use of it.
struct TeamUse {
    int threads = 0;            ///< that were to share its work; 0: none
    bool worth_waking = false;  ///< for that work
    bool worked = false;        ///< they did, and are awake for a moment afterwards
    bool awake = false;         ///< until the next parallel region
};
inline thread_local TeamUse team_use;
/// What was noted since this was asked before.
inline TeamUse last_team_use() { return std::exchange(team_use, {}); }
/// Whether so many threads are to share what comes next: work that is not worth waking them is theirs where they are
/// awake.
inline bool shares(int threads, bool worth_waking)
{
    if (threads <= 1) {
        return false;
    }
    const bool shared = team_use.awake || worth_waking;
    team_use = {.threads = threads, .worth_waking = worth_waking, .worked = shared, .awake = false};
    return shared;
}
/// f(k) for 0 <= k < n: on a thread each, if n threads share that, also if the team turns out smaller.
template <class F>
void share(int n, bool worth_waking, const F& f)
{
    if (!shares(n, worth_waking)) {
        for (int k = 0; k < n; ++k) {
            f(k);
        }
        return;
    }
#ifdef _OPENMP
#pragma omp parallel for num_threads(n) schedule(static, 1)
#endif
    for (int k = 0; k < n; ++k) {
        f(k);
    }
}

/// Threads that wait for the next work for so long, or until `is_there()`, are awake when it comes. Others may have
/// their cores meanwhile.
template <class IsThere>
void wait_awake(std::chrono::microseconds at_most, const IsThere& is_there)
{
    const auto end = std::chrono::steady_clock::now() + at_most;
    while (!is_there() && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
    }
}

/// wait_awake() of a whole team of so many, which is awake now; the calling thread does first() before, in which loops
/// are not shared by a team. A team that sleeps takes some 50 us to wake, and where a process has more threads than
/// cores OpenMP's runtime lets it sleep within a microsecond.
template <class First, class IsThere>
void keep_team_awake([[maybe_unused]] int threads, std::chrono::microseconds at_most, const First& first,
                     const IsThere& is_there)
{
    std::atomic<bool> done{false};
#ifdef _OPENMP
#pragma omp parallel num_threads(threads)
#endif
    {
        if (thread_of_team() == 0) {
            first();
            done.store(true, std::memory_order_relaxed);
        }
        wait_awake(at_most, [&] { return done.load(std::memory_order_relaxed) && is_there(); });
    }
    team_use.awake = is_there();
}

/// Whether threads may wait awake: OMP_WAIT_POLICY=passive forbids it.
bool team_may_wait_awake();

/// Once in a process is enough: the threads of a team end by pthread_exit(), for which glibc loads libgcc_s the first
/// time, and aborts where there is no memory left for that. backtrace() needs the same.
/// \throws std::bad_alloc if there is none now
void make_ready_for_ends_of_teams();

}  // namespace rmsp::core
