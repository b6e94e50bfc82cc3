#pragma once

#include <future>
#include <memory>

#include "runtime/engine/caller_memory.hpp"
#include "runtime/matrix/matrix_state.hpp"

/// Products with x and y in memory of GPUs that is the caller's.
namespace rmsp::distributed {

/// The GPU that has y, or else x; the matrix's first one if neither has entries.
/// \throws Error(usage) unless both are in the memory of GPUs, and the matrix's devices are such
template <class T>
int gpu_of_operands(const MatrixState<T>& matrix, bool of_transpose, const T* x, const T* y);

/// y = alpha A x + beta y, or with A^T. A GPU alone works on arrays in its memory as they are; else each device copies
/// its slices in and out. The product is ready for it (prepare_apply()). With `order`, both arrays are in memory of
/// GPUs: returns once every device has its work in its stream, and the order's stream waits for that. Without, the
/// future tells when y is complete.
/// \throws what kept the work from being queued
template <class T>
std::future<void> apply_through_vectors(const std::shared_ptr<MatrixState<T>>& matrix, bool of_transpose, T alpha,
                                        const T* x, T beta, T* y, const std::shared_ptr<engine::CallerOrder>& order);

}  // namespace rmsp::distributed
