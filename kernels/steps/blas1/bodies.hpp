#pragma once

#include <cstdint>

#include <kernels/steps/blas1/blas1.hpp>

/// The CUDA bodies of blas1.hpp; stand-ins that throw NotCompiled in a build without CUDA.
namespace rmsp::kernels::cuda {

template <class T>
void axpy(T alpha, const T* x, T* y, std::int64_t n, const Context& context);
template <class T>
void scal(T alpha, T* x, std::int64_t n, const Context& context);
template <class T>
void copy(const T* x, T* y, std::int64_t n, const Context& context);
template <class T>
void dot(const T* x, const T* y, std::int64_t n, void* workspace, double* result, const Context& context);

}  // namespace rmsp::kernels::cuda
