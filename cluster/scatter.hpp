#pragma once

#include <rmsp/cluster.hpp>

#include "cluster/communicator.hpp"

namespace rmsp::cluster {

/// Sends each process its rows of the first one's matrix; about equally many nonzeros each. Collective.
template <class T>
ClusterRows<T> scatter_rows(Communicator& processes, const CsrMatrix<T>& whole);

}  // namespace rmsp::cluster
