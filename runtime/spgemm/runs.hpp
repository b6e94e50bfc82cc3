#pragma once

#include "runtime/spgemm/part.hpp"

/// Products whose C does not fit beside A and B: runs of rows, one after the other, which go to the host.
namespace rmsp::spgemm {

/// C of a part whose rows do not fit the device together, in about shard.chunks runs of rows that go to part.chunks;
/// `shard` gets what they were. On the part's worker; blocks.
/// The meeting's stop points are between runs.
template <class T>
void compute_in_runs(const Factors<T>& factors, SpgemmShardPlan& shard, ProductPart<T>& part, engine::Worker& worker,
                     const engine::Rendezvous& meeting, T alpha);

}  // namespace rmsp::spgemm
