#pragma once

#include <map>
#include <optional>
#include <string>

#include <rmsp/topology.hpp>

/// Machines that are planned for, and what reports say of where and when a run was.
namespace rmsp::mspmv {

/// What `--machine` and runtime.machine name: "dgx-h200", or "16 x dgx-h200", a cluster of them.
struct NamedMachine {
    std::string name;          ///< of machine_names(); of a cluster's also a file, "node.toml"
    std::optional<int> nodes;  ///< nothing: one machine, by itself
};
/// \throws Error(usage) for a number of machines below 1 or above 1,000,000
NamedMachine machine_named(const std::string& text);

/// "DGX H200: 2 NUMA nodes, 112 cores, 224 hardware threads, 8 GPUs".
std::string topology_line(const Topology& topology);

/// Date, host name, program and library.
std::map<std::string, std::string> run_context();

}  // namespace rmsp::mspmv
