#pragma once

#include <memory>

#include "runtime/matrix/matrix_state.hpp"
#include "runtime/plan/stored.hpp"

namespace rmsp::distributed {

/// New values, same structure; from the devices if `resident` is not null.
template <class T>
void update_values(const std::shared_ptr<MatrixState<T>>& matrix, const T* values,
                   plan::ResidentEntries<T>* resident = nullptr);

}  // namespace rmsp::distributed
