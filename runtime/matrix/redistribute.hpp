#pragma once

#include <memory>

#include "runtime/matrix/matrix_state.hpp"

namespace rmsp::distributed {

/// The options of a matrix for one that takes its place in another runtime.
template <class T>
DistributeOptions options_for(const RuntimeState& target, const MatrixState<T>& matrix);

/// \throws Error(device) that names the rows, columns or entries of a resident matrix that were on lost devices
template <class T>
void require_whole(const MatrixState<T>& matrix);

/// What Runtime::redistribute() does without arrays: the matrix in the target, from what the devices of its own runtime
/// hold, or of a streamed one from the arrays that it is streamed from.
/// \throws as require_whole(), and as Runtime::distribute()
template <class T>
std::shared_ptr<MatrixState<T>> redistribute(const std::shared_ptr<RuntimeState>& target,
                                             const std::shared_ptr<MatrixState<T>>& matrix);

}  // namespace rmsp::distributed
