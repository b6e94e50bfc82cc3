#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <rmsp/spgemm.hpp>

#include "runtime/multigrid/linked_rows.hpp"
#include "runtime/node/node.hpp"

namespace rmsp::multigrid {

/// P^T A P of matrices whose rows several processes have: A P on the own rows, with the rows of P that others have;
/// then what these rows add to each coarse row, which goes to the process that has it. All structures are kept, in host
/// memory and on the devices.
template <class T>
class LinkedGalerkin {
public:
    /// Collective. \param rows, p  own rows of A and of P; columns of P are coarse rows
    /// \param first_rows  of A; coarse_first_rows  of the product
    LinkedGalerkin(const Links& links, const std::shared_ptr<detail::RuntimeState>& runtime,
                   const std::vector<std::int64_t>& first_rows, const std::vector<std::int64_t>& coarse_first_rows,
                   const WholeColumns<T>& rows, const WholeColumns<T>& p, Determinism determinism);
    /// For other values of both. Collective.
    void renew(const WholeColumns<T>& rows, const WholeColumns<T>& p);
    /// The own rows of the product.
    const WholeColumns<T>& coarse() const { return sums_->sums(); }
    std::int64_t host_bytes() const;

private:
    const Links links_;
    Known known_;  ///< rows of P that others have
    // Read by the products where these are computed in runs.
    CsrMatrix<T> a_;
    CsrMatrix<T> p_;  ///< own rows, then those of others
    CsrMatrix<T> own_p_;
    CsrMatrix<T> r_;
    SparseProduct<T> ap_;
    SparseProduct<T> rap_;
    std::optional<AddedRows<T>> sums_;
};

}  // namespace rmsp::multigrid
