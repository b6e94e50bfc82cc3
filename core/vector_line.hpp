#pragma once

#include <cstdint>

namespace rmsp::core {

/// Entries of a vector. Slices that begin at multiples of it are at the beginning of a line of a GPU's caches; passes
/// over others read and write up to a sixth more slowly.
inline constexpr std::int64_t vector_line = 32;

}  // namespace rmsp::core
