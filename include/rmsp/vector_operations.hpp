#pragma once

#include <future>

#include <rmsp/export.hpp>
#include <rmsp/runtime.hpp>

/// Operations on vectors that live on the devices of a runtime: what iterative solvers need beside
/// DistributedMatrix::apply(). All are done in order with applies and with each other; each device works on what it
/// holds, and nothing moves between devices. Those that return nothing are queued: they return at once, and what a
/// device throws in one is lost (Runtime::synchronize() waits for all). Operands have the same size, layout and slices,
/// as vectors of one matrix from make_x() and make_y() have; they may be the same vector, and their handles may go
/// while the work is queued.
/// \throws Error(usage) at once, for empty vectors, and for operands of different runtimes, sizes, layouts or slices
namespace rmsp {

/// Queues y = alpha x + y; alpha == 0 leaves y as it is.
template <class T>
RMSP_API void axpy(T alpha, const DistributedVector<T>& x, DistributedVector<T>& y);

/// Queues x = alpha x; alpha == 0 gives zeros, whatever x holds.
template <class T>
RMSP_API void scal(T alpha, DistributedVector<T>& x);

/// Queues y = x.
template <class T>
RMSP_API void copy(const DistributedVector<T>& x, DistributedVector<T>& y);

/// The sum of x[i] y[i], in double whatever T is, in an order that depends on the sizes and devices alone: the same
/// call gives the same bits. A replicated vector is summed by slices as well. Blocks until the devices have done what
/// was queued before and their sums, which are added in the order of the devices.
/// \throws what a device threw
template <class T>
[[nodiscard]] RMSP_API T dot(const DistributedVector<T>& x, const DistributedVector<T>& y);
/// dot() without waiting, unless 64 are in flight. get() waits for the devices, and rethrows what one threw. The future
/// is deferred: wait_for() tells nothing of the devices.
template <class T>
[[nodiscard]] RMSP_API std::future<T> dot_async(const DistributedVector<T>& x, const DistributedVector<T>& y);

/// The square root of dot(x, x); squares of entries must not overflow a double. Blocks and throws as dot().
template <class T>
[[nodiscard]] RMSP_API T norm2(const DistributedVector<T>& x);
/// norm2() without waiting, as dot_async().
template <class T>
[[nodiscard]] RMSP_API std::future<T> norm2_async(const DistributedVector<T>& x);

}  // namespace rmsp
