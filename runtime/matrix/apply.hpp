#pragma once

#include "runtime/engine/rendezvous.hpp"
#include "runtime/engine/worker.hpp"
#include "runtime/matrix/matrix_state.hpp"
#include "runtime/matrix/operands.hpp"
#include "runtime/matrix/phase_probe.hpp"

namespace rmsp::detail {

/// Queues y = alpha A x + beta y, or with A^T, on one worker; the body of every apply.
template <class T>
void apply_on(MatrixState<T>& matrix, engine::Worker& worker, engine::Rendezvous& meeting, T alpha, const Source<T>& x,
              T beta, const Target<T>& y, PhaseProbe* probe, bool of_transpose = false);

/// Adds the shared rows' carries to a host y, in device order; after all devices are done.
template <class T>
void finish_host_y(const MatrixState<T>& matrix, T* y, bool of_transpose = false);

}  // namespace rmsp::detail
