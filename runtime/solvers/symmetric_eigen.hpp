#pragma once

#include <cstddef>
#include <vector>

namespace rmsp::solvers {

/// Eigenvalues of a small dense symmetric matrix, the least one first, and their vectors of length 1.
struct SymmetricEigen {
    std::vector<double> values;
    std::vector<double> vectors;  ///< entry i of vector k is at [i * n + k]
};

/// By cyclic Jacobi rotations (G. H. Golub, C. F. Van Loan, Matrix Computations, 8.5). a: n x n entries, by rows.
SymmetricEigen symmetric_eigen(std::vector<double> a, std::size_t n);

/// A = L L^T for the rows and columns of a symmetric matrix that are independent of those before them.
struct IndependentCholesky {
    std::vector<std::size_t> kept;  ///< those rows, in order
    std::vector<double> l;          ///< kept.size() rows of as many entries; 0 above the diagonal
};

/// a: n x n entries, by rows. A row is left out where less than the fraction `least` of its diagonal entry is left
/// (which holds for 0 and NaN).
IndependentCholesky independent_cholesky(const std::vector<double>& a, std::size_t n, double least);

}  // namespace rmsp::solvers
