#pragma once

#include <cstdint>

#include <rmsp/host_vector.hpp>
#include <rmsp/matrix.hpp>

/// Incomplete factorisations without fill: factors that have entries only where the matrix has. (Meijerink, van der
/// Vorst: An iterative solution method for linear systems of which the coefficient matrix is a symmetric M-matrix,
/// Math. Comput. 31, 1977; Saad: Iterative methods for sparse linear systems, section 10.3)
namespace rmsp::matrix {

/// A square part of a matrix on its diagonal, and the factors of it. With one for each part of a matrix, and no
/// overlap, the solves are those of an additive Schwarz method, or block Jacobi.
template <class T>
struct SquareBlock {
    std::int64_t rows = 0;
    HostVector<std::int64_t> row_ptr;   ///< rows + 1 entries
    HostVector<std::int32_t> col_idx;   ///< from 0 at the first row of the block; rising, each once
    HostVector<std::int64_t> diagonal;  ///< of each row, its place among the entries: all rows have one
    HostVector<T> values;
};

/// Rows [first, end) and the same columns of A; entries in other columns are left out, repeated ones added up, and a
/// diagonal entry of 0 is put where there is none. Parallel.
/// \throws Error(usage) for rows that the matrix has not or that are not columns, or more than 2^31 - 1 of them
template <class T>
SquareBlock<T> square_block(const CsrView<T>& a, std::int64_t first, std::int64_t end);

/// New values of the same matrix into a block made by square_block() of the same rows. Parallel.
template <class T>
void renew(const CsrView<T>& a, std::int64_t first, SquareBlock<T>& block);

/// Adds to each diagonal entry of a block made by square_block() the magnitudes of the entries of its row that are
/// outside the block, with the diagonal's sign. Sweeps that solve with each block alone then converge for every
/// symmetric positive definite A. (Baker, Falgout, Kolev, Yang: Multigrid
/// smoothers for ultraparallel computing, SIAM J. Sci. Comput. 33, 2011, section 5) Parallel.
template <class T>
void add_outside_norms(const CsrView<T>& a, std::int64_t first, SquareBlock<T>& block);

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
