#pragma once

#include <rmsp/config.hpp>

#include "apps/mspmv/cluster_exchange.hpp"
#include "apps/mspmv/cluster_steps.hpp"

/// How long a step takes on many equal nodes; docs/cluster.md explains the model.
namespace rmsp::mspmv {

/// Sets `plan`'s ClusterPlan::planned and the tables of strong and weak scaling for 1, 2, 4 ... 1,024 nodes, from the
/// plan of one of cluster.nodes nodes and what the cluster is said to be: nodes, network, counts of a step, size.
void predict_cluster(Plan& plan, const ExchangeModel& exchange);

/// The step of a node that has the rows of `plan` and receives `exchange` for each product, by the same model. Of
/// Plan::cluster it takes nodes, network and counts of a step.
ClusterStep predict_step(const Plan& plan, const NodeExchange& exchange);

}  // namespace rmsp::mspmv
