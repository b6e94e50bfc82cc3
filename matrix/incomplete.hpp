#pragma once

#include <cstdint>

#include "matrix/square_block.hpp"

/// Incomplete factorisations: factors that have entries only where the matrix has, or where levels of fill put some.
/// (Meijerink, van der Vorst: An iterative solution method for linear systems of which the coefficient matrix is a
/// symmetric M-matrix, Math. Comput. 31, 1977; Saad: Iterative methods for sparse linear systems, section 10.3)
namespace rmsp::matrix {

/// How a factorisation ended.
struct FactorStatus {
    bool complete = false;
    /// alpha: the factors are those of A + alpha D, where D is the diagonal of A (IC), or has the largest magnitude of
    /// each row with the sign of its diagonal (ILU). (Manteuffel: An incomplete factorization technique for positive
    /// definite linear systems, Math. Comput. 34, 1980)
    double shift = 0;
    int attempts = 0;
    /// Row with a pivot that was zero, not finite, or of IC not positive, in the last attempt that failed; -1: none
    /// did.
    std::int64_t row = -1;
    std::int64_t replaced = 0;  ///< of Gauss-Seidel: diagonal entries that were 0, and count as 1
};

/// Enlarges the pattern of a block, with zeros, by the entries that elimination makes up to a level of fill: those of A
/// are of level 0, and one that comes of entries of levels p and q is of level p + q + 1. factor_ilu0() of the block
/// is ILU(level) then, and renew() keeps the pattern. A level of 0 or below adds nothing. Serial.
/// (Saad, section 10.3.3)
template <class T>
void add_fill(SquareBlock<T>& block, int level);

/// Factors A = L U in place on the pattern of the block: L below the diagonal, with a unit diagonal that is not stored,
/// U from the diagonal on. A pivot that is smaller than the largest entry of its row by the precision of T counts as
/// zero; the factorisation is then done again with a shift, from 1/1024 on, four times as large each time, up to 1.
/// Rows of one level of the lower triangle in parallel, sums in double, the same on any number of threads.
/// Not complete: the block's values are undefined.
template <class T>
FactorStatus factor_ilu0(SquareBlock<T>& block, int threads = 0);

/// Factors A = L L^T of a symmetric A, of which the lower triangle is read, in place: L up to the diagonal,
/// A above it, as it was. A diagonal entry that is not
/// positive cannot be helped by a shift: not complete after one attempt. Otherwise as factor_ilu0().
template <class T>
FactorStatus factor_ic0(SquareBlock<T>& block, int threads = 0);

/// The factors of a sweep of Gauss-Seidel forward and one backward, (D + L) D^-1 (D + U), with D, L and U the diagonal
/// of the block and what is below and above it: L D^-1 below the diagonal, with a unit diagonal that is not stored,
/// D + U from the diagonal on. No elimination, so that only a diagonal entry that is not finite leaves it incomplete;
/// one of 0 counts as 1. Parallel.
template <class T>
FactorStatus factor_gauss_seidel(SquareBlock<T>& block, int threads = 0);

}  // namespace rmsp::matrix
