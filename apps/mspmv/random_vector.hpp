#pragma once

#include <cstdint>

#include <rmsp/host_vector.hpp>

namespace rmsp::mspmv {

/// Entry i of a random vector in [-1, 1): a hash of seed, stream and i (SplitMix64: Steele, Lea and Flood, OOPSLA
/// 2014), so that it depends neither on threads nor on the length. `first`: the number of the first entry.
template <class T>
HostVector<T> random_vector(std::int64_t n, std::int64_t seed, std::uint64_t stream, std::int64_t first = 0);

}  // namespace rmsp::mspmv
