#pragma once

#include <cstddef>
#include <cstdint>

namespace rmsp::core {

/// A count or an index of the library, which has a sign, as the containers of the standard library take it.
constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace rmsp::core
