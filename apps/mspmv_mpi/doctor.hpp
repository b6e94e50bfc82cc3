#pragma once

#include <cstdint>
#include <string>

#include <mpi.h>
#include <nlohmann/json.hpp>

#include <rmsp/topology.hpp>

namespace rmsp::mpi {

struct LinkOptions {
    std::int64_t bytes = 4 << 20;    ///< of each large message, at least 8
    double time_limit_seconds = 60;  ///< for each pair
};

/// Messages between each two processes, one pair at a time, in host memory: a short one there and back, a large one,
/// and large ones both ways at once; what arrives is compared. All processes return the same. Collective.
/// \throws Error(usage) for bad options; Error(device) on all processes where data arrived changed, and on two that did
///         not hear of each other in time, for which the others wait
nlohmann::ordered_json measure_links(MPI_Comm communicator, const LinkOptions& options);

/// Medians of what at most 16 pairs of neighbouring processes measure, one pair at a time: of pairs between nodes where
/// there are some, else of any. Without adapters where there is one process. Collective. \throws as measure_links()
Network measure_network(MPI_Comm communicator, const LinkOptions& options);

/// The table that a person reads.
std::string links_text(const nlohmann::ordered_json& report);

}  // namespace rmsp::mpi
