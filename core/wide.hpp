#pragma once

namespace rmsp::core {

/// For products of 64-bit sizes. ISO C++ lacks the type; GCC, Clang and nvcc have it on every 64-bit target.
__extension__ using uint128 = unsigned __int128;

}  // namespace rmsp::core
