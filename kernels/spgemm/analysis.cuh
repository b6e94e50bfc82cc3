#pragma once

#include <cstdint>
#include <limits>

#include <kernels/spgemm/device.cuh>

/// What the analyses of A and of B share.
namespace rmsp::kernels::spgemm {

inline constexpr int analysis_threads = 256;

/// Above all columns.
inline constexpr std::int32_t beyond_columns = std::numeric_limits<std::int32_t>::max();

/// Rows of more entries than this on average get a warp each.
inline constexpr double mean_for_a_warp = 64;
/// Up to so many entries a row on average a thread takes a row of A: what threads tell each other of one costs more
/// than to go through it alone.
inline constexpr double mean_for_a_thread = 16;
/// Where a warp has a longer row than this, several threads take each of its rows,
inline constexpr int most_entries_of_a_thread = 32;
/// so many.
inline constexpr int lanes_of_uneven_rows = 8;

}  // namespace rmsp::kernels::spgemm
