#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <rmsp/cluster.hpp>

#include "cluster/communicator.hpp"
#include "cluster/halo.hpp"

namespace rmsp::detail {

struct ClusterState {
    std::shared_ptr<cluster::Communicator> processes;
    std::optional<Runtime> runtime;
    double weight = 1;  ///< of this process's devices together, RuntimeOptions::weights; each 1 where there are none
};

template <class T>
struct ClusterMatrixState {
    std::shared_ptr<ClusterState> cluster;
    std::vector<std::int64_t> rows;  ///< first one of each process, and their number
    std::vector<std::int64_t> columns;
    std::vector<std::int64_t> ghosts;  ///< columns, rising
    std::int64_t nnz = 0;
    std::shared_ptr<cluster::HaloExchange> exchange;
    GhostedMatrix<T> local;
    HaloReport halo;
};

}  // namespace rmsp::detail

namespace rmsp::cluster {

/// What a handle points to. \throws Error(usage) for an empty one
template <class State>
State& checked(const std::shared_ptr<State>& state)
{
    if (!state) {
        throw Error(ErrorCode::usage, "an empty handle of a cluster, or of its matrix or solver");
    }
    return *state;
}

}  // namespace rmsp::cluster
