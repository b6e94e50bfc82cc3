#pragma once

#include <cstdint>
#include <vector>

#include <rmsp/spgemm.hpp>

#include "runtime/spgemm/exchange.hpp"
#include "runtime/spgemm/rows.hpp"

/// Which device computes which rows of C, and with what.
namespace rmsp::spgemm {

/// In how many runs of rows a device computes its part where it does not fit at once.
std::int64_t runs_of(const SpgemmShardPlan& shard);

/// options.memory_limit for a device with so many bytes free (0: unknown).
/// \throws Error(usage) for one that is no share and no bytes
std::int64_t memory_limit(const SpgemmOptions& options, std::int64_t free_bytes);

/// Counts, cuts and estimates; touches no device. `first_rows`: of each device, and the rows at the end, where A's rows
/// are on the devices; null: A is cut. `limits` are of each device's memory, 0 where there is none; `work` becomes
/// count_work(); `selections`, if not null, gets the rows of B for each device. \throws Error(usage) for bad matrices,
/// dimensions or options
template <class T>
SpgemmPlan plan_product(const RuntimeState& runtime, const CsrView<T>& a, const CsrView<T>& b,
                        const SpgemmOptions& options, const std::vector<std::int64_t>* first_rows,
                        const std::vector<std::int64_t>& limits, HostVector<std::int64_t>& work,
                        std::vector<RowSelection>* selections);

/// The same of factors that are where they are multiplied, on the one device there is, with so many bytes (0: unknown):
/// what depends on their entries is left to the kernel. \throws Error(usage) for bad dimensions or options
template <class T>
SpgemmPlan plan_in_place(const RuntimeState& runtime, const CsrView<T>& a, const CsrView<T>& b,
                         const SpgemmOptions& options, std::int64_t limit);

}  // namespace rmsp::spgemm
