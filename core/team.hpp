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

/// That a team of the calling thread works now, of so many threads, which will be awake for a moment afterwards.
inline thread_local int threads_at_work = 0;
inline void note_team(int threads) { threads_at_work = threads; }
/// The last one that was noted since this was asked before; 0: none.
inline int last_team() { return std::exchange(threads_at_work, 0); }

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
}

/// Whether threads may wait awake: OMP_WAIT_POLICY=passive forbids it.
bool team_may_wait_awake();

/// Once in a process is enough: the threads of a team end by pthread_exit(), for which glibc loads libgcc_s the first
/// time, and aborts where there is no memory left for that. backtrace() needs the same.
/// \throws std::bad_alloc if there is none now
void make_ready_for_ends_of_teams();

}  // namespace rmsp::core
