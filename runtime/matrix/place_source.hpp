#pragma once

#include "runtime/matrix/matrix_state.hpp"
#include "runtime/plan/stored.hpp"

/// NUMA placement of a streamed matrix. (MSREP, section 4.2)
namespace rmsp::distributed {

/// Brings what each device reads of the caller's arrays to the device's node as `options.placement` says, on all
/// workers at once, before the arrays are locked. Returns the matrix as it is to be read; copies belong to
/// matrix.origin. A note of the matrix's report says where the pages lie then. Nothing happens where there is one node,
/// or no device whose node is known.
template <class T>
plan::Stored<T> place_source(MatrixState<T>& matrix, const plan::Stored<T>& a);

/// The caller wrote to the array that was copied: copies the worker's part anew.
template <class T>
void renew_copy(const MatrixState<T>& matrix, const engine::Worker& worker);

}  // namespace rmsp::distributed
