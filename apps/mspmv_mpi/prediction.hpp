#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <rmsp/cluster.hpp>
#include <rmsp/config.hpp>

/// What the model of clusters (docs/cluster.md) foretells of a run, to be held against what that measures.
namespace rmsp::mpi {

/// The rows of this process as the model sees them: columns that others own come behind its own ones.
struct OwnPart {
    Plan plan;                  ///< of the devices of this process
    double ghosts = 0;          ///< entries of x that other processes send
    double messages = 0;        ///< from as many of them
    double outside = 0;         ///< share of the nonzeros in their columns
    Network network;            ///< between the processes, as measured; without adapters: there is one
    double nonzeros_a_row = 0;  ///< of the whole matrix
};

/// Measures the bandwidth of the devices, where it is not known, and the messages between processes, then plans the
/// own rows as a dry run does. Collective.
template <class T>
OwnPart plan_own_part(Cluster& cluster, const ClusterMatrix<T>& a, const CsrMatrix<T>& rows,
                      const DistributeOptions& options);

/// What the process says that expects to take longest: seconds of a step and of its parts, which process, the network,
/// and the error, (predicted - measured) / measured, where something was measured. A step is a product where `method`
/// is empty, else an iteration of that solver. `reason` says why nothing is foretold. Collective; the first process
/// gets it.
nlohmann::ordered_json foretell(const Config& config, const OwnPart& part, const std::string& method,
                                double measured_seconds);

/// Lines of a report: what was foretold, of what parts, and how far off it was. \param step  "product", "iteration"
std::string predicted_text(const nlohmann::ordered_json& predicted, const char* step);

}  // namespace rmsp::mpi
