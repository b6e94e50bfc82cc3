#pragma once

#include <string>
#include <string_view>

namespace rmsp::numa {

/// Refuses XML that hwloc does not write, and that its reader (2.9) takes for granted not to get: objects without their
/// sets of processors and nodes, or with endless ones, an outermost one that is no machine, and declarations of types
/// and entities. Everything else is left to hwloc. \throws Error(io) "FILE:LINE: ..."; `name` stands for the file
void require_sound_xml(std::string_view text, const std::string& name);

}  // namespace rmsp::numa
