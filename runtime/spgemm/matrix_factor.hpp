#pragma once

#include <memory>

#include "runtime/spgemm/factors.hpp"

/// Distributed matrices as factors of products.
namespace rmsp::spgemm {

using detail::MatrixState;

/// \throws Error(usage) unless the devices of that runtime have all of the matrix in CSR, with 32-bit columns and the
/// values that were
///         given; `name` says which factor it is
template <class T>
std::unique_ptr<ResidentFactor<T>> matrix_factor(const RuntimeState& runtime,
                                                 const std::shared_ptr<MatrixState<T>>& matrix, const char* name);

}  // namespace rmsp::spgemm
