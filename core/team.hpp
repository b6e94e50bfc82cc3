#pragma once

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

/// Once in a process is enough: the threads of a team end by pthread_exit(), for which glibc loads libgcc_s the first
/// time, and aborts where there is no memory left for that. backtrace() needs the same.
/// \throws std::bad_alloc if there is none now
void make_ready_for_ends_of_teams();

}  // namespace rmsp::core
