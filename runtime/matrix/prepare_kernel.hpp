#pragma once

#include <rmsp/runtime.hpp>

#include "runtime/engine/worker.hpp"
#include "runtime/matrix/row_shard.hpp"
#include "runtime/matrix/shard.hpp"

/// The kernel of a resident shard made ready, and the race of two where the model does not decide.
namespace rmsp::distributed {

/// Makes the kernel of the plan ready for shard.owned; where the choice is automatic, the next one if there is no room
/// for it or it finds that it does not suit, and a Race of two where there is time for one. Completes the candidates.
template <class T>
void prepare_kernel(ShardPlan& plan, const Shard<T>& shard, RowShard<T>& own, engine::Worker& worker,
                    const DistributeOptions& options, const RowStatistics& rows);

/// Notes what the operator for A itself keeps on the device and reads. That for A^T may be made when the plan is in
/// use.
template <class T>
void note_kept(ShardPlan& plan, const kernels::SpmvOperator<T>& made);

/// Decides the shard's race, if there is one still and it is over a kernel with an order of its own, for vectors of
/// that order. On the worker's thread; see Race::decide_in_order().
template <class T>
void end_race_in_order(const Shard<T>& shard, RowShard<T>& own);

}  // namespace rmsp::distributed
