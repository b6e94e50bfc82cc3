#pragma once

#include <memory>

#include "runtime/matrix/state.hpp"

/// The automatic choice of a resident shard's kernel: predicted by a model, remembered from earlier, or raced.
namespace rmsp::detail {

/// Kernels of the shard by their predicted times, the preparation shared among the expected applies; the one that won a race
/// before comes first. Fills `candidates`, `kernel`, `kernel_reason` and `structure`. Touches no device.
/// \param rows  of the rows that the shard owns, which begin at `first_row`
/// \throws Error(usage) as kernels::choose_spmv()
template <class T>
void rank_kernels(ShardPlan& shard, const RuntimeState& runtime, const CsrView<T>& a, const DistributeOptions& options,
                  const RowStatistics& rows, std::int64_t first_row);

/// Makes the kernel of the plan ready for shard.owned; where the choice is automatic, the next one if there is no room for it or
/// it finds that it does not suit, and a Race of two where there is time for one. Completes the candidates.
template <class T>
void prepare_kernel(ShardPlan& plan, Shard<T>& shard, engine::Worker& worker, const DistributeOptions& options,
                    const RowStatistics& rows);

/// Decides the shard's race, if there is one still and it is over a kernel with an order of its own, for vectors of that order. On the
/// worker's thread; see Race::decide_in_order().
template <class T>
void end_race_in_order(Shard<T>& shard);

/// The plan with what races have found so far.
template <class T>
Plan current_plan(const MatrixState<T>& matrix);

/// Keeps the results of decided races for later processes, but of those for vectors in the kernel's order, which these may not use.
template <class T>
void remember_races(const MatrixState<T>& matrix);

}  // namespace rmsp::detail
