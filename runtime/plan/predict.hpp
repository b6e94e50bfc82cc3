#pragma once

#include <rmsp/runtime.hpp>

#include "runtime/node/node.hpp"

/// How long an apply takes by the model.
namespace rmsp::plan {

/// What the exchange of an x by rows costs whatever it moves.
double exchange_latency(const detail::RuntimeState& runtime);

/// Sets ShardPlan::exchange_seconds and predicted_seconds from what the plan says now: kernels, limits, entries to
/// exchange.
void predict(Plan& plan, const detail::RuntimeState& runtime, Layout x_layout);

}  // namespace rmsp::plan
