#pragma once

#include <cstdint>

#include <kernels/context.hpp>

/// Vector operations on one device, each with a host and a CUDA body chosen by the context's kind. All are queued on the
/// context's stream and return at once on GPUs; all pointers are memory of the context's device. Vectors may be the same, but
/// must not overlap otherwise.
namespace rmsp::kernels {

/// y[i] += alpha x[i]; alpha == 0 leaves y as it is, also where x is not finite
template <class T>
void axpy(T alpha, const T* x, T* y, std::int64_t n, const Context& context);

/// x[i] *= alpha; alpha == 0 gives zeros, also for NaN
template <class T>
void scal(T alpha, T* x, std::int64_t n, const Context& context);

/// y[i] = x[i]
template <class T>
void copy(const T* x, T* y, std::int64_t n, const Context& context);

/// What dot() needs besides its operands: this many bytes of device memory, zero before the first call; calls in one stream
/// share it.
inline constexpr std::int64_t dot_workspace_bytes = 16 + 8 * 2048;

/// *result = x[0] y[0] + x[1] y[1] + ..., summed in double in an order that depends on n and the device alone. `result` may
/// be pinned host memory.
template <class T>
void dot(const T* x, const T* y, std::int64_t n, void* workspace, double* result, const Context& context);

}  // namespace rmsp::kernels
