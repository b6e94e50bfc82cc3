#pragma once

#include <cstdint>
#include <span>

/// Small dense systems, as the rows of sparse inverses and the blocks of a diagonal are made of. Matrices are stored by
/// columns. Scaling the columns of a system does not change whether it counts as singular.
namespace rmsp::matrix {

/// The x that minimises |A x - b|, by Householder's reflections; A has `rows` >= `cols`. A and b are overwritten, the
/// solution is b[0 .. cols). (Golub, Van Loan: Matrix Computations, algorithm 5.3.2)
/// \returns false, with b undefined, if the columns of A are linearly dependent to working precision, or not finite
bool least_squares(std::span<double> a, std::int64_t rows, std::int64_t cols, std::span<double> b);

/// Solves A x = b by Gaussian elimination with partial pivoting; A is n x n, both are overwritten, x is in b.
/// \returns false, with b undefined, if A is singular to working precision, or not finite
bool solve(std::span<double> a, std::int64_t n, std::span<double> b);

/// Solves A x = b by Cholesky's factorisation A = L L^T; A is n x n, of which the lower triangle is read. Both are
/// overwritten, x is in b.
/// \returns false, with b undefined, if A is not positive definite to working precision
bool solve_positive_definite(std::span<double> a, std::int64_t n, std::span<double> b);

/// The inverse of the n x n matrix A, which is overwritten, by Gauss-Jordan elimination with partial pivoting.
/// \returns false, with the inverse undefined, if A is singular to working precision, or not finite
bool invert(std::span<double> a, std::int64_t n, std::span<double> inverse);

}  // namespace rmsp::matrix
