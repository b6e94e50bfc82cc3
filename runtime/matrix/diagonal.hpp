#pragma once

#include <memory>

#include "runtime/matrix/matrix_state.hpp"
#include "runtime/matrix/vector_state.hpp"

namespace rmsp::distributed {

/// The entries a_ii of a square matrix, in a new vector as make_y() makes it; blocks.
/// \throws Error(usage) if the matrix is not square, Error(out_of_memory) if there is no room for the vector
template <class T>
std::shared_ptr<VectorState<T>> diagonal(const std::shared_ptr<MatrixState<T>>& matrix);

/// The sum of the magnitudes of each row of a square matrix, negative where the diagonal entry is, in a new vector as
/// make_y() makes it; blocks. On the devices where these have whole rows in CSR, else on the host.
/// \throws Error(out_of_memory) if there is no room for the vector
template <class T>
std::shared_ptr<VectorState<T>> row_norms(const std::shared_ptr<MatrixState<T>>& matrix);

}  // namespace rmsp::distributed
