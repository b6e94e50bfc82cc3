#pragma once

#include <cstdint>
#include <vector>

#include <rmsp/matrix.hpp>
#include <rmsp/partition.hpp>

namespace rmsp::plan {

/// Cuts rows where another split did, so that vectors fit both.
/// \param first_rows  of each part, rising; what follows the last of them is not read
/// \param row_ptr     not read where there are first_entries
/// \param first_entries  entries before those rows, and all of them at the end; empty: as row_ptr says
/// \param nodes       NUMA node of each part, as many as there are parts
/// \throws Error(usage) for rows that the matrix has not, or that fall
Partition split_at(std::int64_t rows, std::int64_t cols, IndexView row_ptr, const std::vector<std::int64_t>& first_rows,
                   const std::vector<std::int64_t>& first_entries, const std::vector<int>& nodes);
/// Cuts by nonzeros, at rows of which it is known how many entries are before them.
/// \param entries  before row 0, row `step`, row 2 `step` and so on, and all of them at the end
Partition split_at_samples(std::int64_t rows, std::int64_t cols, const std::vector<std::int64_t>& entries,
                           std::int64_t step, int devices, const PartitionOptions& options);

}  // namespace rmsp::plan
