#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <rmsp/runtime.hpp>

#include "core/clock.hpp"
#include "runtime/matrix/matrix_state.hpp"

/// Parts of equal time: distributed, timed, cut anew and distributed again.
namespace rmsp::distributed {

/// Distributes the matrix with cuts by weights of the devices that get a part.
template <class T>
using DistributeByWeights = std::function<std::shared_ptr<MatrixState<T>>(const std::vector<double>&)>;

/// Moves the cuts of a matrix that was distributed, which began at `start`, as DistributeOptions::balance says. A
/// matrix that is distributed again is freed first.
template <class T>
std::shared_ptr<MatrixState<T>> balance_time(std::shared_ptr<MatrixState<T>> matrix, const DistributeOptions& options,
                                             core::Clock::time_point start, const DistributeByWeights<T>& distribute);

}  // namespace rmsp::distributed
