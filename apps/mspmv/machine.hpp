#pragma once

#include <map>
#include <string>

#include <rmsp/topology.hpp>

/// What reports say of where and when a run was.
namespace rmsp::mspmv {

/// "DGX H200: 2 NUMA nodes, 112 cores, 224 hardware threads, 8 GPUs".
std::string topology_line(const Topology& topology);

/// Date, host name, program and library.
std::map<std::string, std::string> run_context();

}  // namespace rmsp::mspmv
