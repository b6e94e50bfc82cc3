#pragma once

#include <vector>

#include <rmsp/runtime.hpp>

#include "runtime/node/node.hpp"
#include "runtime/plan/stored.hpp"

/// From a matrix and the options to who multiplies what, with which kernel.
namespace rmsp::plan {

/// Splits, chooses kernels and counts bytes; touches no device. `weights` of the devices that get a part take the place
/// of RuntimeOptions::weights, unless empty. *split_seconds: what the split alone took, without the scans of rows and
/// columns.
template <class T>
Plan make_plan(const detail::RuntimeState& runtime, const Stored<T>& a, const DistributeOptions& options,
               const std::vector<double>& weights = {}, double* split_seconds = nullptr);

/// make_plan() in three steps, for a matrix whose columns are on the devices (Stored::columns_on_devices): the split,
/// with which each device can get its part; what is to be known of each part, by any thread; and what follows from
/// that.
template <class T>
Plan begin_plan(const detail::RuntimeState& runtime, const Stored<T>& a, const DistributeOptions& options,
                const std::vector<double>& weights = {}, double* split_seconds = nullptr);
/// \param indices  reads the columns of A, as far as they are in the part
/// \param lengths  of the rows that the part owns; null: of the host's row pointers
template <class T>
void plan_shard(ShardPlan& shard, const Plan& plan, const detail::RuntimeState& runtime, const Stored<T>& a,
                const DistributeOptions& options, kernels::ColumnReader& indices, const RowStatistics* lengths);
template <class T>
void finish_plan(Plan& plan, const detail::RuntimeState& runtime, const DistributeOptions& options);

/// Whether the cuts of such a matrix may be moved to where its parts take equal time.
inline bool can_move_cuts(Format format, const DistributeOptions& options)
{
    return options.mode == Mode::resident && format == Format::csr && options.strategy == PartitionStrategy::nonzeros;
}

}  // namespace rmsp::plan
