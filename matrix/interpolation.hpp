#pragma once

#include <cstdint>
#include <span>

#include <rmsp/matrix.hpp>

#include "matrix/coarsening.hpp"

/// From a vector of the coarse points to one of all rows: the P of classical algebraic multigrid. Coarse points keep
/// their value; a row that has no coarse point to take from is 0 there. Parallel, the same on any number of threads.
namespace rmsp::matrix {

enum class Interpolation : std::uint8_t {
    /// From the coarse points that a row strongly depends on. Entries of the other sign than the diagonal's and of the
    /// same one are each scaled so that rows whose entries sum to 0 take constants over. (Stueben: An introduction to
    /// algebraic multigrid, in Trottenberg et al.: Multigrid, 2001, A.7.2.1)
    direct,
    /// "Extended+i": also from the coarse points of the other rows that it strongly depends on. (De Sterck, Falgout,
    /// Nolting, Yang: Distance-two interpolation for parallel algebraic multigrid, Numer. Linear Algebra Appl. 15,
    /// 2008,
    /// formula 4.10)
    extended,
};

struct InterpolationOptions {
    Interpolation kind = Interpolation::extended;
    /// Entries below this times the largest of their row are left out.
    double truncation = 0;
    /// The largest entries of a row that stay; 0: all. What stays is scaled so that rows keep their sums.
    std::int64_t most_entries = 4;
};

/// P of rows x coarse.count.
/// \param strong  marks of the entries of A (strong_entries())
template <class T>
CsrMatrix<T> interpolation(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Coarsening& coarse,
                           const InterpolationOptions& options);

/// New values of P for other values of A, with the same marks and coarse points, where P has entries.
template <class T>
void renew_interpolation(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Coarsening& coarse,
                         Interpolation kind, CsrMatrix<T>& p);

}  // namespace rmsp::matrix
