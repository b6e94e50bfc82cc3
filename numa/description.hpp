#pragma once

#include <string>
#include <string_view>

#include <rmsp/topology.hpp>

namespace rmsp::numa {

/// Reads a machine description in TOML (docs/topology.md); `name` stands for the file in messages. Source is left
/// empty. \throws Error(io) "FILE:LINE: ..." for syntax, types, values out of range and unknown keys
Topology parse_description(std::string_view text, const std::string& name);

}  // namespace rmsp::numa
