#pragma once

#include <numeric>
#include <string>
#include <vector>

#include <rmsp/topology.hpp>

#include "tests/paths.hpp"

namespace rmsp::test {

/// One of tests/topologies/ by its file, or one that comes with librmsp by its name.
inline Topology machine(const std::string& name)
{
    const bool file = name.find('.') != std::string::npos;
    return Topology::load(file ? source_path("tests/topologies/" + name) : machine_file(name));
}

/// first, first + 1, ..., last
inline std::vector<int> range(int first, int last)
{
    std::vector<int> result(static_cast<std::size_t>(last - first + 1));
    std::iota(result.begin(), result.end(), first);
    return result;
}

inline std::vector<int> nodes_of(const std::vector<Placement>& placements)
{
    std::vector<int> result;
    for (const Placement& placement : placements) {
        result.push_back(placement.node);
    }
    return result;
}

/// First hardware thread of each placement, -1 where it is not bound.
inline std::vector<int> first_threads(const std::vector<Placement>& placements)
{
    std::vector<int> result;
    for (const Placement& placement : placements) {
        result.push_back(placement.threads.empty() ? -1 : placement.threads.front());
    }
    return result;
}

}  // namespace rmsp::test
