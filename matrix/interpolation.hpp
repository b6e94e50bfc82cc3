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
/// \param of  null: all rows; else the coarse points of this coarsening, the other rows are empty
template <class T>
CsrMatrix<T> interpolation(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Coarsening& coarse,
                           const InterpolationOptions& options, const Coarsening* of = nullptr);

/// New values of P for other values of A, with the same marks and coarse points, where P has entries.
template <class T>
void renew_interpolation(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Coarsening& coarse,
                         Interpolation kind, CsrMatrix<T>& p);

/// The P of aggressive coarsening, in two stages: to all rows from the coarse points of `first`, and to these from
/// those that stay, `last` (coarser_pmis()). (U. M. Yang: On long-range interpolation operators for aggressive
/// coarsening, Numer. Linear Algebra Appl. 17, 2010)
template <class T>
struct TwoStages {
    CsrMatrix<T> to_all;    ///< rows x first.count
    CsrMatrix<T> to_first;  ///< rows x last.count, empty but for the coarse points of `first`
    CsrMatrix<T> p;         ///< the product, rows truncated as the stages' are
};
template <class T>
TwoStages<T> interpolation_in_stages(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Coarsening& first,
                                     const Coarsening& last, const InterpolationOptions& options);

/// The product of both stages where something else made them; its new values where they have new ones.
template <class T>
void multiply_stages(TwoStages<T>& stages, const Coarsening& first, const InterpolationOptions& options);
template <class T>
void renew_product(TwoStages<T>& stages, const Coarsening& first);

/// New values of all three, as renew_interpolation().
template <class T>
void renew_interpolation(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Coarsening& first,
                         const Coarsening& last, Interpolation kind, TwoStages<T>& stages);

}  // namespace rmsp::matrix
