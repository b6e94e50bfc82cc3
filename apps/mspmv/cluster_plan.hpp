#pragma once

#include <rmsp/config.hpp>

#include "apps/mspmv/cluster_exchange.hpp"
#include "apps/mspmv/cluster_steps.hpp"

/// How long a step takes on many equal nodes; docs/cluster.md explains the model.
namespace rmsp::mspmv {

/// Sets `plan`'s ClusterPlan::planned and the tables of strong and weak scaling for 1, 2, 4 ... 1,024 nodes, from the
/// plan of one of cluster.nodes nodes and what the cluster is said to be: nodes, network, counts of a step, size.
void predict_cluster(Plan& plan, const ExchangeModel& exchange);

}  // namespace rmsp::mspmv
