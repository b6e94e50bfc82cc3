#pragma once

#include <rmsp/export.hpp>
#include <rmsp/matrix.hpp>
#include <rmsp/runtime.hpp>

/// Matrices and vectors from one runtime to another: from host devices to GPUs and back, or to another number of
/// devices. The caller's arrays are not needed for it. What is copied passes through host memory and waits for what was
/// queued before with the original, which stays as it is.
namespace rmsp {

/// A as the devices hold it, in host memory: rows and values, with the entries of a row in the order in which they were
/// given, by column where A was given by columns. Values that are stored as floats (DistributeOptions::values) come as
/// those. Of a streamed matrix, from the caller's arrays. Blocks.
/// \throws Error(usage) for an empty handle, Error(out_of_memory), and what a device threw
template <class T>
[[nodiscard]] RMSP_API CsrMatrix<T> download(const DistributedMatrix<T>& matrix);

/// The same matrix on the devices of another runtime, or of the same one with other options: rows, columns and values
/// of download(), distributed as Runtime::distribute() does. How the original was distributed does not matter: format,
/// kernel and cuts are chosen anew, so that the last bits of products may differ. Blocks.
/// \throws what download() and Runtime::distribute() throw, and Error(usage) for options that would leave the matrix in
///         host arrays, which nobody keeps here: Mode::streamed and borrow
template <class T>
[[nodiscard]] RMSP_API DistributedMatrix<T> transfer(const DistributedMatrix<T>& matrix, Runtime& runtime,
                                                     const DistributeOptions& options = {});

/// y = x, entry by entry, whatever their runtimes, layouts, slices and orders are. Blocks.
/// \throws Error(usage) for empty handles and other sizes, and what a device threw
template <class T>
RMSP_API void transfer(const DistributedVector<T>& x, DistributedVector<T>& y);

}  // namespace rmsp
