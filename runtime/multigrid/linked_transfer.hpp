#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "matrix/aggregation.hpp"
#include "runtime/multigrid/linked_around.hpp"
#include "runtime/multigrid/linked_rows.hpp"
#include "runtime/multigrid/transfer.hpp"

namespace rmsp::multigrid {

/// The P of a matrix that several processes have, and what it was made of.
template <class T>
class LinkedTransfer {
public:
    LinkedTransfer() = default;
    virtual ~LinkedTransfer() = default;
    LinkedTransfer(const LinkedTransfer&) = delete;
    LinkedTransfer& operator=(const LinkedTransfer&) = delete;

    /// New values of P for other values of the rows, where it has entries; coarse points or aggregates stay.
    /// Collective.
    virtual void renew(const WholeColumns<T>& rows) = 0;
    /// Of what is kept for that.
    virtual std::int64_t host_bytes() const = 0;

    std::vector<std::int64_t> first_rows;  ///< of the coarse rows of each process, in its own rows, and their number
    WholeColumns<T> p;                     ///< own rows; empty where coarsening stalled
    matrix::NearNullspace near;            ///< of the own coarse rows
};

/// Coarsens by the rows of all processes. Classical: coarse points and P are those of one process, if the structure is
/// symmetric. Aggregates are of one process's rows each; P is smoothed across processes. Collective.
/// \param near  of the own rows
template <class T>
std::unique_ptr<LinkedTransfer<T>> linked_transfer(const Links& links, const std::vector<std::int64_t>& first_rows,
                                                   const WholeColumns<T>& rows, const matrix::NearNullspace& near,
                                                   const Coarsener& how);

/// That of classical multigrid, aggressive or not. Collective. \param rows  of all processes
template <class T>
std::unique_ptr<LinkedTransfer<T>> linked_classical(const Links& links, Around<T> around, std::int64_t rows,
                                                    const Coarsener& how);

}  // namespace rmsp::multigrid
