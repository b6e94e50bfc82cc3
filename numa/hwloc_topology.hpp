#pragma once

#include <string>
#include <string_view>

#include <rmsp/topology.hpp>

namespace rmsp::numa {

/// What hwloc finds on the machine the process runs on, restricted to the process's cpuset; source and live are set.
Topology live_topology();

/// Reads hwloc's XML from `text`; `name` stands for the file in messages. Source is left empty.
/// \throws Error(io)
Topology topology_from_xml(std::string_view text, const std::string& name);

/// Builds a machine from an hwloc synthetic description ("numa:2 core:22 pu:4"). Source is left empty; there are no
/// GPUs. \throws Error(io); `where` ("FILE:LINE") stands for the place in the message
Topology topology_from_synthetic(const std::string& description, const std::string& where);

}  // namespace rmsp::numa
