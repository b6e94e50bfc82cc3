#pragma once

#include "runtime/engine/rendezvous.hpp"
#include "runtime/engine/worker.hpp"
#include "runtime/matrix/matrix_state.hpp"
#include "runtime/matrix/operands.hpp"
#include "runtime/matrix/phase_probe.hpp"

/// A matrix's products with A and with A^T.
namespace rmsp::distributed {

/// Makes room and kernels ready for products with A, or with A^T; once for each, blocks.
/// \throws Error(usage) for A^T of a streamed matrix, or if no kernel keeps the determinism asked for
template <class T>
void prepare_apply(MatrixState<T>& matrix, bool of_transpose);

/// \throws Error(usage) for vectors on the devices that are not what such a product takes: of another runtime, size,
/// split or order, or the same
template <class T>
void require_operands(const std::shared_ptr<MatrixState<T>>& matrix, bool of_transpose,
                      const std::shared_ptr<VectorState<T>>& x, const std::shared_ptr<VectorState<T>>& y);

/// Of a job that is a product with the matrix. With vectors in the caller's memory: `host_data`.
template <class T>
engine::JobTerms product_terms(const MatrixState<T>& matrix, bool host_data);

/// Queues y = alpha A x + beta y, or with A^T, on one worker; the body of every apply.
template <class T>
void apply_on(MatrixState<T>& matrix, engine::Worker& worker, engine::Rendezvous& meeting, T alpha, const Source<T>& x,
              T beta, const Target<T>& y, PhaseProbe* probe, bool of_transpose = false);

/// What is left to do with a host y; after all devices are done.
template <class T>
void finish_host_y(const MatrixState<T>& matrix, T* y, bool of_transpose = false);

}  // namespace rmsp::distributed
