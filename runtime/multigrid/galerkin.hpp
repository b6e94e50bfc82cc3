#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <rmsp/spgemm.hpp>

#include "runtime/spgemm/triple_in_slabs.hpp"

namespace rmsp::multigrid {

/// R A P of a level, whose result is a matrix of its own: computed once, then for other values of the three. Everything
/// blocks.
template <class T>
class GalerkinProduct {
public:
    GalerkinProduct(const DistributedMatrix<T>& r, const DistributedMatrix<T>& a, const DistributedMatrix<T>& p);

    /// For the values of now; as a whole or in slabs of rows, as there is room. \throws Error(out_of_memory)
    void compute();
    /// The matrix that was computed, whose parts begin at these rows. What else that left is freed.
    DistributedMatrix<T> distribute(const DistributeOptions& options, const std::vector<std::int64_t>& first_rows);
    /// Gives that matrix the values of now. Where there is room all that leads to them is kept: it takes as much as all
    /// else of a level.
    void renew(DistributedMatrix<T>& coarse);

    /// Of compute(), until distribute(): null where it was done in slabs.
    const TripleProduct<T>* whole() const { return whole_ ? &*whole_ : nullptr; }
    /// In which the last compute() was done; 0: as a whole.
    std::int64_t slabs() const { return slabs_; }
    /// What renewals keep.
    std::int64_t device_bytes() const;

private:
    SpgemmOptions options() const;
    void renew_kept(DistributedMatrix<T>& coarse);

    DistributedMatrix<T> r_;
    DistributedMatrix<T> a_;
    DistributedMatrix<T> p_;
    std::optional<TripleProduct<T>> whole_;  ///< one of the two, for one use
    std::unique_ptr<spgemm::TripleInSlabs<T>> in_slabs_;
    std::optional<TripleProduct<T>> kept_;
    bool keeps_ = true;  ///< whether there is, or may be, room for kept_
    std::int64_t slabs_ = 0;
};

}  // namespace rmsp::multigrid
