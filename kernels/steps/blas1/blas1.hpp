#pragma once

#include <cstdint>

#include <kernels/steps/step.hpp>

/// Vector operations on one device. All are queued on the context's stream and return at once on GPUs; all pointers are
/// memory of the context's device. Vectors may be the same, but must not overlap otherwise.
namespace rmsp::kernels {

template <class T>
struct Blas1 {
    /// y[i] += alpha x[i]; alpha == 0 leaves y as it is, also where x is not finite
    void (*axpy)(T alpha, const T* x, T* y, std::int64_t n, const Context& context) = nullptr;
    /// x[i] *= alpha; alpha == 0 gives zeros, also for NaN
    void (*scal)(T alpha, T* x, std::int64_t n, const Context& context) = nullptr;
    /// y[i] = x[i]
    void (*copy)(const T* x, T* y, std::int64_t n, const Context& context) = nullptr;
    /// *result = x[0] y[0] + x[1] y[1] + ..., summed in double in an order that depends on n and the device alone.
    /// `workspace`: dot_workspace_bytes. `result` may be pinned host memory.
    void (*dot)(const T* x, const T* y, std::int64_t n, void* workspace, double* result,
                const Context& context) = nullptr;

    static const Blas1& host();
    static const Blas1& cuda();
};
RMSP_VALUE_STEP(Blas1, axpy);
RMSP_VALUE_STEP(Blas1, scal);
RMSP_VALUE_STEP(Blas1, copy);
RMSP_VALUE_STEP(Blas1, dot);

/// What dot() needs besides its operands: this many bytes of device memory, zero before the first call; calls in one
/// stream share it.
inline constexpr std::int64_t dot_workspace_bytes = 16 + 8 * 2048;

}  // namespace rmsp::kernels
