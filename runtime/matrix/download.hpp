#pragma once

#include <rmsp/matrix.hpp>

#include "runtime/matrix/matrix_state.hpp"

namespace rmsp::distributed {

/// A as the devices hold it, in host memory: for what is computed of a matrix once, as preconditioners are. Rows have
/// their entries in the order of the arrays that were distributed (by column, where A was given by columns; by row and
/// then in that order, where it was given in none). Of a streamed matrix, from the caller's arrays. Blocks.
/// \throws Error(out_of_memory) if a device has no room for columns that are numbered anew
template <class T>
CsrMatrix<T> download_matrix(const MatrixState<T>& matrix);

}  // namespace rmsp::distributed
