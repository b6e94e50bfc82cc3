#pragma once

#include <cstdint>
#include <type_traits>

#include "core/wide.hpp"

/// Counter-based random numbers: each is a function of a seed and a position, so that any thread can make any of them.
namespace rmsp::io {

/// The finalizer of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
constexpr std::uint64_t mix(std::uint64_t z) noexcept
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/// Stream `id` of a seed; number i of the stream by at(i).
class RandomStream {
public:
    constexpr explicit RandomStream(std::uint64_t seed, std::uint64_t id = 0) noexcept
        : base_(mix(mix(seed + golden) + id * 0xd1342543de82ef95U))
    {
    }
    constexpr std::uint64_t at(std::uint64_t i) const noexcept { return mix(base_ + (i + 1) * golden); }
    /// Uniform in [-1, 1), on a grid that T holds exactly.
    template <class T>
    constexpr T signed_unit(std::uint64_t i) const noexcept
    {
        if constexpr (std::is_same_v<T, float>) {
            return static_cast<float>(at(i) >> 40) * 0x1p-23F - 1.0F;
        } else {
            return static_cast<double>(at(i) >> 11) * 0x1p-52 - 1.0;
        }
    }
    /// Uniform in [0, n), but for a bias below n / 2^64.
    constexpr std::int64_t below(std::uint64_t i, std::int64_t n) const noexcept
    {
        return static_cast<std::int64_t>((static_cast<core::uint128>(at(i)) * static_cast<core::uint128>(n)) >> 64);
    }

private:
    static constexpr std::uint64_t golden = 0x9e3779b97f4a7c15U;
    std::uint64_t base_;
};

}  // namespace rmsp::io
