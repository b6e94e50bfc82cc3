#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace rmsp::kernels {

/// Row pointers of either width, for kernels that read few of them.
struct EitherPointers {
    const void* data;
    bool wide;
};
__device__ __forceinline__ std::int64_t fetch(const std::int32_t* p, std::int64_t i) { return __ldg(p + i); }
__device__ __forceinline__ std::int64_t fetch(const std::int64_t* p, std::int64_t i) { return __ldg(p + i); }
__device__ __forceinline__ std::int64_t fetch(const EitherPointers& p, std::int64_t i)
{
    return p.wide ? fetch(static_cast<const std::int64_t*>(p.data), i)
                  : fetch(static_cast<const std::int32_t*>(p.data), i);
}

}  // namespace rmsp::kernels
