#pragma once

#include <cstdint>

namespace rmsp::kernels {

/// Longer rows are multiplied one by one, as CSR.
inline constexpr std::int64_t longest_sliced_row = 256;

}  // namespace rmsp::kernels
