#pragma once

#include <span>
#include <string>
#include <string_view>

#include <rmsp/export.hpp>

namespace rmsp {

/// Which of the known names a mistyped one most likely meant, by the fewest letters to change; "" if there are none.
RMSP_API std::string nearest_name(std::string_view name, std::span<const std::string> known);

}  // namespace rmsp
