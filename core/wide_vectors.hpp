#pragma once

/// Bodies for wider vectors than every processor of this architecture has, chosen as the program runs. They add the
/// same numbers in the same order, without fused multiply-adds (sources that use them are compiled so), hence the bits
/// of a result do not depend on them.
#if defined(__x86_64__) && defined(__GNUC__)
#define RMSP_WIDE_BODIES 1
/// Before a function: it, and what it calls, is compiled for AVX2. Called only where has_wide_vectors().
#define RMSP_WIDE_BODY __attribute__((target("avx2"), flatten))
#else
#define RMSP_WIDE_BODIES 0
#define RMSP_WIDE_BODY
#endif

namespace rmsp::core {

inline bool has_wide_vectors()
{
#if RMSP_WIDE_BODIES
    return __builtin_cpu_supports("avx2") != 0;
#else
    return false;
#endif
}

}  // namespace rmsp::core
