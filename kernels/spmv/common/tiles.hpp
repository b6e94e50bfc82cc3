#pragma once

#include <cstdint>

/// Tiles of consecutive entries: what kernels may store, and what the automatic choice looks for.
namespace rmsp::kernels {

/// Entries of a tile, which a warp multiplies in one step, 8 a lane.
inline constexpr int tile_entries_in_a_step = 256;

/// Columns of a tile may be counted from its first in 16 bits; this code stands for none.
inline constexpr std::int64_t no_tile_column = 0xffff;

/// Whether columns from `least` to `most` fit these 16 bits.
constexpr bool fits_16_bits(std::int64_t least, std::int64_t most) { return most - least < no_tile_column; }

}  // namespace rmsp::kernels
