#pragma once

#include <cstdint>
#include <vector>

#include "matrix/aggregation.hpp"
#include "runtime/multigrid/linked_rows.hpp"
#include "runtime/multigrid/transfer.hpp"

namespace rmsp::multigrid {

/// The P of a matrix that several processes have.
template <class T>
struct LinkedTransfer {
    std::vector<std::int64_t> first_rows;  ///< of the coarse rows of each process, in its own rows, and their number
    WholeColumns<T> p;                     ///< own rows; empty where coarsening stalled
    matrix::NearNullspace near;            ///< of the own coarse rows
};

/// Coarsens by the rows of all processes. Classical: coarse points and P are those of one process, if the structure is
/// symmetric. Aggregates are of one process's rows each; P is smoothed across processes. Collective.
/// \param near  of the own rows
template <class T>
LinkedTransfer<T> linked_transfer(const Links& links, const std::vector<std::int64_t>& first_rows,
                                  const WholeColumns<T>& rows, const matrix::NearNullspace& near, const Coarsener& how);

}  // namespace rmsp::multigrid
