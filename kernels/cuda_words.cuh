#pragma once

#include <cstdint>

/// Words that kernels of several devices wait for, in memory that all of them reach.
namespace rmsp::kernels::cuda {

__device__ __forceinline__ std::uint64_t load_acquire(const std::uint64_t* word)
{
    std::uint64_t value = 0;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

__device__ __forceinline__ void store_release(std::uint64_t* word, std::uint64_t value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

// Without an order: with fences before and behind, which then wait once for many words.
__device__ __forceinline__ std::uint64_t load_relaxed(const std::uint64_t* word)
{
    std::uint64_t value = 0;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

__device__ __forceinline__ void store_relaxed(std::uint64_t* word, std::uint64_t value)
{
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

}  // namespace rmsp::kernels::cuda
