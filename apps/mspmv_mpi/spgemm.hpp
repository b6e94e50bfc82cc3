#pragma once

#include <nlohmann/json.hpp>

#include <rmsp/cluster.hpp>
#include <rmsp/config.hpp>

namespace rmsp::mpi {

/// C = alpha A B as [spgemm] says, of matrices that load_rows() loads, or of which the first process makes A^T: times,
/// what was fetched, and the comparison of C v with A (B v) for a random v. `report` gets how files were read, `own` is
/// its line of this process. Collective. \throws Error(usage), Error(io), Error(verification) on all
template <class T>
nlohmann::ordered_json run_spgemm(const Config& config, Cluster& cluster, nlohmann::ordered_json& report,
                                  nlohmann::ordered_json& own);

/// \throws Error(usage) for keys that only mspmv spgemm has
void check_spgemm(const Config& config);

}  // namespace rmsp::mpi
