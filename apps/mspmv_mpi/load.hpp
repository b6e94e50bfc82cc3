#pragma once

#include <cstdint>

#include <nlohmann/json.hpp>

#include <rmsp/cluster.hpp>
#include <rmsp/config.hpp>

namespace rmsp::mpi {

/// This process's rows of what load_matrix() gives: a file as Cluster::read() reads it, in parts where it can be,
/// unless the configuration makes something else of the matrix; all else is loaded by the first process. `row_at`,
/// unless null, as load_matrix() has it, on the first process. Processes share rows by `balance`. Says in `report` and
/// `own` how a file was read. Collective.
template <class T>
ClusterRows<T> load_rows(Cluster& cluster, const Config::Matrix& config, Balance balance,
                         HostVector<std::int64_t>* row_at, nlohmann::ordered_json& report, nlohmann::ordered_json& own);

}  // namespace rmsp::mpi
