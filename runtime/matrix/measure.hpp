#pragma once

#include <cstdint>
#include <memory>

#include <rmsp/report.hpp>
#include <rmsp/runtime.hpp>

#include "runtime/matrix/matrix_state.hpp"

namespace rmsp::distributed {

/// DistributedMatrix::measure().
template <class T>
Measurement measure_matrix(const std::shared_ptr<MatrixState<T>>& matrix,
                           typename DistributedMatrix<T>::Vectors vectors, std::int64_t warmup, std::int64_t iterations,
                           T alpha, const T* x, T beta, const T* y_in, T* y_out, bool cold);

}  // namespace rmsp::distributed
