#pragma once

#include <rmsp/cluster.hpp>

#include "cluster/communicator.hpp"
#include "cluster/shares.hpp"

namespace rmsp::cluster {

/// Sends each process its rows of the first one's matrix. Collective.
template <class T>
ClusterRows<T> scatter_rows(Communicator& processes, const CsrMatrix<T>& whole, const Shares& shares);

}  // namespace rmsp::cluster
