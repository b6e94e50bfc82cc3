#pragma once

#include <memory>
#include <vector>

#include <rmsp/runtime.hpp>

#include "runtime/matrix/matrix_state.hpp"
#include "runtime/plan/stored.hpp"

namespace rmsp::distributed {

/// Splits A, copies each part to its device and makes its kernel ready; moves the cuts as DistributeOptions::balance
/// says.
template <class T>
std::shared_ptr<MatrixState<T>> distribute(const std::shared_ptr<RuntimeState>& runtime, const plan::Stored<T>& a,
                                           const DistributeOptions& options);

}  // namespace rmsp::distributed
