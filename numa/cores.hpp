#pragma once

#include <string>
#include <vector>

#include <rmsp/topology.hpp>

namespace rmsp::numa {

/// Hardware threads of each core of a node, in the order of NumaNode::cores.
std::vector<std::vector<int>> pus_by_core(const NumaNode& node);

/// "0-3,8,10-11" for a set of numbers in any order; "-" for none.
std::string format_ranges(std::vector<int> numbers);

}  // namespace rmsp::numa
