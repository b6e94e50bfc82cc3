#pragma once

#include <string>

#include <rmsp/cluster.hpp>

#include "cluster/communicator.hpp"
#include "cluster/shares.hpp"

namespace rmsp::cluster {

/// Cluster::read(). Collective.
template <class T>
ClusterRows<T> read_rows(Communicator& processes, const std::string& path, const ReadOptions& options,
                         const Shares& shares, ReadReport& report);

}  // namespace rmsp::cluster
