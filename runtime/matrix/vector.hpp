#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/matrix/matrix_state.hpp"
#include "runtime/matrix/vector_state.hpp"

namespace rmsp::distributed {

/// Memory for a vector of `size` entries; offsets say which entries each device holds (replicated: which it brings to
/// the host), needed which ones it will be sent, if the vector is an x by rows, ghosts how many others behind those.
template <class T>
std::shared_ptr<VectorState<T>> make_vector(const std::shared_ptr<RuntimeState>& runtime, Layout layout,
                                            std::int64_t size, const std::vector<std::int64_t>& offsets,
                                            const std::vector<transport::Range>& needed = {},
                                            const std::vector<std::int64_t>& ghosts = {});

/// A vector of one side of a matrix, with room for what products with it need.
template <class T>
std::shared_ptr<VectorState<T>> make_vector(const MatrixState<T>& matrix, const plan::Side& side, Layout layout);

/// A vector with room for products of two matrices that slice it alike: the x of both.
template <class T>
std::shared_ptr<VectorState<T>> make_shared_x(const MatrixState<T>& a, const MatrixState<T>& b);

/// A vector in the order of the matrix's kernel, if it has one of its own and vectors can be in it; blocks.
template <class T>
std::shared_ptr<VectorState<T>> make_vector(const std::shared_ptr<MatrixState<T>>& matrix, const plan::Side& side,
                                            Layout layout, Order order);

/// Bytes of each device that so many vectors along the rows of A take at least.
template <class T>
std::vector<std::int64_t> vector_bytes(const MatrixState<T>& matrix, std::int64_t vectors);

/// Copies all entries from, or to, memory of the host or of a GPU; blocks.
template <class T>
void upload_vector(const std::shared_ptr<VectorState<T>>& vector, const T* entries);
template <class T>
void download_vector(const std::shared_ptr<VectorState<T>>& vector, T* entries);

/// What upload_vector() and download_vector() queue on each worker.
template <class T>
void upload_slice(const VectorState<T>& vector, engine::Worker& worker, const T* entries);
template <class T>
void download_slice(const VectorState<T>& vector, engine::Worker& worker, T* entries);

}  // namespace rmsp::distributed
