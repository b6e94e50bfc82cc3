#pragma once

#include <cstdint>

#include <rmsp/host_vector.hpp>
#include <rmsp/matrix.hpp>

namespace rmsp::matrix {

/// The entries a_ii of a matrix, min(rows, cols) of them: repeated ones added, 0 where there is none. Parallel.
template <class T>
HostVector<T> diagonal(const CsrView<T>& a);

/// The sum of the magnitudes of each row, negative where the diagonal entry is. Parallel.
template <class T>
HostVector<T> row_norms(const CsrView<T>& a);

/// Inverses of the dense square blocks along the diagonal of some rows of a matrix.
template <class T>
struct BlockInverses {
    std::int64_t rows = 0;  ///< of the matrix
    int size = 1;           ///< rows and columns of a block
    /// size * size entries a block, by columns. Of the last block, what lies beyond the rows is the identity's.
    HostVector<T> blocks;
    /// Blocks that are singular to working precision, or not finite. Each of their rows has the inverse of its diagonal
    /// entry in place of a row of the inverse, or 1 where that entry is zero or not finite.
    std::int64_t singular = 0;
    std::int64_t first_singular = -1;  ///< the first of them; -1: none
};

/// Inverts the blocks of `size` consecutive rows and the same columns, from row `first` to row `end`; the last block
/// may be smaller. Entries outside the blocks are left out. By Gauss-Jordan elimination with partial pivoting, in
/// double. Parallel.
/// \throws Error(usage) for a size outside [1, 64], or rows that the matrix has not or that are not columns
template <class T>
BlockInverses<T> block_inverses(const CsrView<T>& a, int size, std::int64_t first, std::int64_t end);

}  // namespace rmsp::matrix
