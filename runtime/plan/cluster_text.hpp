#pragma once

#include <string>

#include <rmsp/plan.hpp>

namespace rmsp::plan {

/// What Plan::to_text() says of a cluster; empty without one.
std::string cluster_text(const ClusterPlan& cluster);

}  // namespace rmsp::plan
