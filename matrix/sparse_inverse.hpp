#pragma once

#include <cstdint>

#include <rmsp/matrix.hpp>

/// Sparse approximate inverses: a matrix M with few entries whose product with a vector stands for a solve with A, so
/// that a preconditioner is a product too. Every row of M is a small dense system of its own, in double.
namespace rmsp::matrix {

/// What M minimises or solves on its pattern.
enum class SparseInverse : std::uint8_t {
    /// |M A - I| in Frobenius' norm: a least-squares problem a row, by Householder's reflections. With the pattern of
    /// A this is SPAI-1. (Grote, Huckle: Parallel preconditioning with sparse approximate inverses, SIAM J. Sci.
    /// Comput.
    /// 18, 1997, with the pattern given; Broeker, Grote: Sparse approximate inverse smoothers for geometric and
    /// algebraic
    /// multigrid, Appl. Numer. Math. 41, 2002, for the names SPAI-0 and SPAI-1)
    spai,
    /// M A = I in the entries of the pattern: a square system a row, by Gaussian elimination with partial pivoting.
    /// (Anzt, Huckle, Braeckle, Dongarra: Incomplete sparse approximate inverses for parallel preconditioning, Parallel
    /// Comput. 71, 2018)
    isai,
    /// Of a symmetric positive definite A: the lower triangular factor G of an inverse M = G^T G, which is symmetric
    /// positive definite whatever the pattern, as the method of conjugate gradients needs it. (G A G^T)_ii = 1. Only
    /// the lower triangle of A is used. (Kolotilina, Yeremin: Factorized sparse approximate inverse preconditionings I,
    /// SIAM J. Matrix Anal. Appl. 14, 1993)
    fsai,
};

/// Where M may have entries, and what its rows may cost.
struct InversePattern {
    /// The pattern of A^power; 0: the diagonal alone (with SparseInverse::spai, SPAI-0).
    int power = 1;
    /// Most entries of a row of M. Entries fewer steps away in the graph of A come first, among those of one row of A
    /// the larger ones. The diagonal always stays.
    std::int64_t most_entries = 128;
    /// Most entries of A that the small system of one row is made of: with those rows of A that its pattern names, in
    /// the same order, passing over the ones that do not fit. Dense rows so stay out of the systems of others.
    std::int64_t most_gathered = 4096;
};

/// Rows of M whose small system was singular to working precision, not positive definite (fsai), or not finite, or has
/// the solution 0, with which M would be singular. They have a diagonal entry alone: spai and isai a_ii / |a_i|^2, the
/// least-squares solution of SPAI-0; fsai 1 / sqrt(|a_ii|); 1 where that is zero or not finite.
struct InverseStatus {
    std::int64_t singular_rows = 0;
    std::int64_t first_singular = -1;  ///< the first of them; -1: none
};

/// The pattern of M for a square matrix A, with values that are not set: columns rise, the diagonal is there. Parallel,
/// the same on any number of threads.
/// \throws Error(usage) if A is not square, for power < 0 or limits < 1, and as validate()
template <class T>
CsrMatrix<T> inverse_pattern(const CsrView<T>& a, SparseInverse kind, const InversePattern& pattern = {});

/// Computes the values of M on its pattern, for A or a matrix of the same pattern with other values. Repeated entries
/// of A add up; its columns may be in any order. Parallel, the same on any number of threads.
template <class T>
InverseStatus fill_inverse(const CsrView<T>& a, SparseInverse kind, CsrMatrix<T>& m);

/// Rows of the pattern of M.
struct InverseSlice {
    std::int64_t first = 0;  ///< number of the first one in M
    std::int64_t rows = 0;
    IndexView row_ptr;  ///< rows + 1 entries: places in col_idx, and of values
    IndexView col_idx;
};
/// The same for some rows of M, whose numbers first_singular counts. \param first_of_a  the row that a.row_ptr begins
/// with; there are the rows that those of M name
template <class T>
InverseStatus fill_inverse_rows(const CsrView<T>& a, std::int64_t first_of_a, SparseInverse kind, const InverseSlice& m,
                                T* values, int threads);

}  // namespace rmsp::matrix
