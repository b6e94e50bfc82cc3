#pragma once

#include <string>

#include <rmsp/characterize.hpp>

/// Partitioners of hypergraphs that the program was built with.
namespace rmsp::mspmv {

/// "zoltan": PHG of Sandia's Zoltan, multilevel, serial; "greedy": librmsp's own; "auto": the first that there is.
/// \throws Error(usage) for another name, and for "zoltan" in a build without
HypergraphPartitioner hypergraph_partitioner(const std::string& name);

}  // namespace rmsp::mspmv
