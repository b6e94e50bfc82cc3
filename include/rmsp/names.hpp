#pragma once

#include <span>
#include <string>
#include <string_view>

#include <rmsp/export.hpp>

namespace rmsp {

/// Which of the known names a mistyped one most likely meant, by the fewest letters to change; "" if there are none.
RMSP_API std::string nearest_name(std::string_view name, std::span<const std::string> known);
/// The same, or "" where it is another word: more than two letters, and more than a third of them, would have to
/// change.
RMSP_API std::string similar_name(std::string_view name, std::span<const std::string> known);

}  // namespace rmsp
