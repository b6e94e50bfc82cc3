#pragma once

#include <memory>

#include "runtime/matrix/caller_indices.hpp"
#include "runtime/matrix/matrix_state.hpp"

/// A matrix in the caller's arrays on its way to the devices.
namespace rmsp::distributed {

/// What Runtime::distribute() does with a CsrView, CscView, CooView or BsrView.
template <class View>
auto distribute_view(const std::shared_ptr<RuntimeState>& runtime, const View& a, const DistributeOptions& options)
    -> std::shared_ptr<MatrixState<ValueOf<View>>>;

/// What Runtime::plan() does with them.
template <class View>
Plan plan_view(RuntimeState& runtime, const View& a, const DistributeOptions& options);

}  // namespace rmsp::distributed
