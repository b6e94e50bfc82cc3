#pragma once

#include <cstdint>
#include <vector>

#include <rmsp/spgemm.hpp>

#include "runtime/spgemm/exchange.hpp"
#include "runtime/spgemm/rows.hpp"
#include "runtime/spgemm/work.hpp"

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
                        const std::vector<std::int64_t>& limits, RowWork& work, std::vector<RowSelection>* selections);

/// Plans with factors that are on the devices, whose entries the host does not see: what depends on those is left to
/// the kernels. Each device multiplies the rows of A that it has. `first_rows` and `slices` are A's, of
/// ResidentFactor; `touched`: the columns of A that each device's rows may have; `selections` gets the rows of B for
/// each device, all between the first and the last such column, and `needed` are their entries, on several devices.
/// \throws Error(usage) for bad dimensions or options
template <class T>
SpgemmPlan plan_in_place(const RuntimeState& runtime, const CsrView<T>& a, const CsrView<T>& b,
                         const SpgemmOptions& options, const std::vector<std::int64_t>& first_rows,
                         const std::vector<std::int64_t>& slices, const std::vector<transport::Range>& touched,
                         const std::vector<transport::Range>& needed, const std::vector<std::int64_t>& limits,
                         std::vector<RowSelection>& selections);

}  // namespace rmsp::spgemm
