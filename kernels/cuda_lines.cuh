#pragma once

#include <cstdint>

namespace rmsp::kernels::cuda {

/// 12 bytes of data and a tag, written and read at once: who finds the tag has the data (as in NCCL's protocol LL,
/// there with 4 bytes of data to a tag).
struct alignas(16) Line {
    std::uint32_t word[3];
    std::uint32_t tag;
};

__device__ __forceinline__ void store_line(Line* place, const Line& line)
{
    const std::uint64_t low = std::uint64_t{line.word[1]} << 32 | line.word[0];
    const std::uint64_t high = std::uint64_t{line.tag} << 32 | line.word[2];
    asm volatile("{ .reg .b128 line; mov.b128 line, {%1, %2}; st.relaxed.sys.global.b128 [%0], line; }" ::"l"(place),
                 "l"(low), "l"(high)
                 : "memory");
}

__device__ __forceinline__ Line load_line(const Line* place)
{
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    asm volatile("{ .reg .b128 line; ld.relaxed.sys.global.b128 line, [%2]; mov.b128 {%0, %1}, line; }"
                 : "=l"(low), "=l"(high)
                 : "l"(place)
                 : "memory");
    return {{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high)},
            static_cast<std::uint32_t>(high >> 32)};
}

}  // namespace rmsp::kernels::cuda
