#pragma once

#include <cstdint>

#include <kernels/steps/support/support.hpp>

namespace rmsp::kernels::cuda {

/// Copies one part by `copiers` blocks of `Threads`, of which the caller is number `copier`: 16 bytes at a time, four
/// of them in flight, single words at the ends. Loads pass by the first-level cache, which does not see what a peer
/// writes.
template <int Threads>
__device__ __forceinline__ void copy_part(const CopyPart& part, unsigned copier, unsigned copiers)
{
    constexpr int unroll = 4;
    const auto* from = static_cast<const char*>(part.from);
    auto* to = static_cast<char*>(part.to);
    const std::int64_t head =
        min(part.bytes, static_cast<std::int64_t>((16 - reinterpret_cast<std::uintptr_t>(to) % 16) % 16));
    const std::int64_t vectors = (part.bytes - head) / 16;
    const auto* vector_from = reinterpret_cast<const int4*>(from + head);
    auto* vector_to = reinterpret_cast<int4*>(to + head);
    const std::int64_t step = std::int64_t{copiers} * Threads;
    for (std::int64_t i = std::int64_t{copier} * Threads + threadIdx.x; i < vectors; i += unroll * step) {
        int4 v[unroll];
#pragma unroll
        for (int k = 0; k < unroll; ++k) {
            if (i + k * step < vectors) {
                v[k] = __ldcg(vector_from + i + k * step);
            }
        }
#pragma unroll
        for (int k = 0; k < unroll; ++k) {
            if (i + k * step < vectors) {
                vector_to[i + k * step] = v[k];
            }
        }
    }
    if (copier == 0) {
        const std::int64_t tail = head + 16 * vectors;
        const std::int64_t word = 4 * std::int64_t{threadIdx.x};
        if (word < head) {
            *reinterpret_cast<int*>(to + word) = __ldcg(reinterpret_cast<const int*>(from + word));
        }
        if (tail + word < part.bytes) {
            *reinterpret_cast<int*>(to + tail + word) = __ldcg(reinterpret_cast<const int*>(from + tail + word));
        }
    }
}

inline bool aligned_alike(const CopyPart& part)
{
    return (reinterpret_cast<std::uintptr_t>(part.to) - reinterpret_cast<std::uintptr_t>(part.from)) % 16 == 0;
}

}  // namespace rmsp::kernels::cuda
