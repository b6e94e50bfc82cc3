#pragma once

#include <cstdint>
#include <string>

#include <rmsp/matrix.hpp>

#include "matrix/aggregation.hpp"

namespace rmsp::matrix {

/// The inverse of a small matrix, all of whose entries are stored, by Gauss-Jordan elimination in double. Rows without
/// entries other than 0 count as rows of the identity. Near-null vectors that A maps to zero, to rounding, are left
/// out: the inverse is then that of A on what is orthogonal to them, and maps them to zero. A matrix that is singular
/// in another way gets a larger diagonal until it is not. `note` says which null vectors there were, what was enlarged,
/// and whether a matrix of at most 1,024 rows is indefinite, or of the other sign than the finer ones; it is else
/// empty. \param sign  of the diagonals of finer matrices; 0: there are none \throws Error(usage) if A is not square,
/// or has entries that are not finite
template <class T>
CsrMatrix<T> coarse_inverse(const CsrView<T>& a, const NearNullspace& near_nullspace, double sign, std::string& note);

}  // namespace rmsp::matrix
