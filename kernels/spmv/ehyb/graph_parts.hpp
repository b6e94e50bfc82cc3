#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rmsp::kernels {

/// Whether this build has METIS.
bool has_metis() noexcept;

/// Parts of about equal weight with few edges between them, by METIS k-way (Karypis and Kumar, "A fast and high quality
/// multilevel scheme for partitioning irregular graphs", SISC 1998). Always the same for the same graph. Calls wait for
/// each other. \param first      first neighbour of each vertex, and the end \param neighbours of each vertex,
/// symmetric, without the vertex itself \param weights    of the vertices, positive \param imbalance_per_mille  by
/// which a part may be larger than the average \return the part of each vertex \throws NotCompiled in a build without
/// METIS; Error(usage) if METIS cannot number so many vertices and edges;
///         Error(out_of_memory); Error(internal) if METIS fails otherwise
std::vector<std::int32_t> graph_parts(std::span<const std::int64_t> first, std::span<const std::int32_t> neighbours,
                                      std::span<const std::int32_t> weights, std::int64_t parts,
                                      int imbalance_per_mille);

}  // namespace rmsp::kernels
