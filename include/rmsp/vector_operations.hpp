#pragma once

#include <future>

#include <rmsp/runtime.hpp>

/// Operations on vectors that live on the devices of a runtime: what iterative solvers need beside DistributedMatrix::apply().
/// All are asynchronous and in order with applies and with each other; each device works on what it holds, and nothing moves
/// between devices. Operands have the same size, layout and slices, as vectors of one matrix from make_x() and make_y() have;
/// they may be the same vector.
/// \throws Error(usage) for empty vectors, and for operands of different runtimes, sizes, layouts or slices
namespace rmsp {

/// y = alpha x + y; alpha == 0 leaves y as it is.
template <class T>
void axpy(T alpha, const DistributedVector<T>& x, DistributedVector<T>& y);

/// x = alpha x; alpha == 0 gives zeros, whatever x holds.
template <class T>
void scal(T alpha, DistributedVector<T>& x);

/// y = x
template <class T>
void copy(const DistributedVector<T>& x, DistributedVector<T>& y);

/// The sum of x[i] y[i], in double whatever T is, in an order that depends on the sizes and devices alone: the same call gives
/// the same bits. A replicated vector is summed by slices as well. get() waits for the devices, adds one number for each in their order, and
/// rethrows what one threw. The future is deferred: wait_for() tells nothing of the devices.
template <class T>
std::future<T> dot(const DistributedVector<T>& x, const DistributedVector<T>& y);

/// The square root of dot(x, x); squares of entries must not overflow a double.
template <class T>
std::future<T> norm2(const DistributedVector<T>& x);

}  // namespace rmsp
