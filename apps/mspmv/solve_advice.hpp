#pragma once

#include <span>
#include <string>
#include <vector>

#include <rmsp/matrix.hpp>
#include <rmsp/solver.hpp>

namespace rmsp::mspmv {

/// What about the matrix, the right-hand side, the method and the preconditioner may be why a solve did not converge,
/// and what to try; empty of one that did. Reads the matrix a few times.
template <class T>
std::vector<std::string> solve_advice(const CsrMatrix<T>& a, std::span<const T> b, const SolverOptions& options,
                                      const SolveResult& result);

/// Whether A = A^T, bit for bit.
template <class T>
bool is_symmetric(const CsrMatrix<T>& a);

}  // namespace rmsp::mspmv
