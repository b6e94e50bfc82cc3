#pragma once

#include <cstdint>

#include <rmsp/host_vector.hpp>
#include <rmsp/matrix.hpp>

/// Square parts of a matrix, of which preconditioners factor each by itself.
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

}  // namespace rmsp::matrix
