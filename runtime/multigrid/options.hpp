#pragma once

#include <cstddef>
#include <cstdint>

#include <rmsp/preconditioner.hpp>

#include "runtime/multigrid/transfer.hpp"

namespace rmsp::multigrid {

/// The largest matrix that is inverted where coarsening stalls.
inline constexpr std::int64_t most_inverted = 4096;
/// Applies that P and R are distributed for: so few that they are multiplied from the CSR arrays that products of
/// matrices take. Another format would double what they take, for a small part of a cycle.
inline constexpr std::int64_t from_csr = 1;
/// Levels that may be visited twice: each doubles what is queued.
inline constexpr std::size_t most_doubled = 8;
/// Sweeps on a last level that is not inverted.
inline constexpr int last_sweeps = 8;

/// Whether a coarser matrix of so many rows is not worth its level.
inline bool is_stalled(std::int64_t coarse_rows, std::int64_t rows)
{
    constexpr double least_coarsening = 0.9;
    return coarse_rows == 0 || static_cast<double>(coarse_rows) > least_coarsening * static_cast<double>(rows);
}

/// \throws Error(usage) for one that is out of range
void check_options(Method method, const MultigridOptions& options);
/// How a level is made coarser. \param vectors  of the near-nullspace
Coarsener coarsener(Method method, const MultigridOptions& options, int vectors, std::size_t level);

}  // namespace rmsp::multigrid
