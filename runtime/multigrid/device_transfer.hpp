#pragma once

#include <memory>

#include "runtime/multigrid/transfer.hpp"

/// The two kinds of transfer that are made on devices whose kind has the steps (kernels/steps/coarsening): one unknown
/// a node, not aggressive.
namespace rmsp::multigrid {

/// By coarse points, on the first device. Unless that one has all rows of the matrix, in the columns' own numbers, it
/// gets them for as long as P is made.
template <class T>
std::unique_ptr<Transfer<T>> classical_transfer(std::shared_ptr<MatrixState<T>> a, const Coarsener& coarsener);

/// By aggregates, each row on the device that has it.
template <class T>
std::unique_ptr<Transfer<T>> aggregation_transfer(std::shared_ptr<MatrixState<T>> a, const Coarsener& coarsener);

}  // namespace rmsp::multigrid
