#pragma once

#include "runtime/matrix/state.hpp"

/// How long an apply takes by the model, and what of its exchange is known before a matrix is distributed.
namespace rmsp::detail {

/// What the exchange of an x by rows costs whatever it moves.
double exchange_latency(const RuntimeState& runtime);

/// Sets ShardPlan::exchange_seconds and predicted_seconds from what the plan says now: kernels, limits, entries to exchange.
void predict(Plan& plan, const RuntimeState& runtime, Layout x_layout);

/// Whether an x by rows will be exchanged by entries, as choose_exchange() finds on the devices, and how many each device
/// receives; reads every column.
template <class T>
void plan_exchange(Plan& plan, const RuntimeState& runtime, const Stored<T>& a, const DistributeOptions& options);

}  // namespace rmsp::detail
