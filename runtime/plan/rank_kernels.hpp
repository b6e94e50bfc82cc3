#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kernels/spmv/choose/features.hpp>
#include <rmsp/runtime.hpp>

#include "runtime/node/node.hpp"

/// The automatic choice of a resident shard's kernel, as far as it is made without the device: predicted by a model, or
/// remembered.
namespace rmsp::plan {

/// Kernels of the shard by their predicted times, the preparation shared among the expected applies; the one that won a
/// race before comes first. Fills `candidates`, `kernel`, `kernel_reason` and `structure`. Touches no device but by
/// `columns`, which reads those of A.
/// \param rows  of the rows that the shard owns, which begin at `first_row`
/// \throws Error(usage) as kernels::choose_spmv()
template <class T>
void rank_kernels(ShardPlan& shard, const detail::RuntimeState& runtime, const CsrView<T>& a,
                  kernels::ColumnReader& columns, const DistributeOptions& options, const RowStatistics& rows,
                  std::int64_t first_row);

/// Applies after which the format of the chosen kernel has paid for itself; 0 where nothing was converted, or it never
/// does.
double break_even(std::vector<KernelCandidate> candidates, const std::string& kernel);

/// Of the file in the cache that keeps the times of the shard's race.
std::string race_cache_name(const ShardPlan& shard);

}  // namespace rmsp::plan
