#include <kernels/steps/blas1/bodies.hpp>
#include <rmsp/error.hpp>

// What stands in for blas1_cuda.cu in a build without CUDA.
namespace rmsp::kernels::cuda {

template <class T>
void axpy(T, const T*, T*, std::int64_t, const Context&)
{
    throw NotCompiled("axpy for CUDA devices");
}
template <class T>
void scal(T, T*, std::int64_t, const Context&)
{
    throw NotCompiled("scal for CUDA devices");
}
template <class T>
void copy(const T*, T*, std::int64_t, const Context&)
{
    throw NotCompiled("copy for CUDA devices");
}
template <class T>
void dot(const T*, const T*, std::int64_t, void*, double*, const Context&)
{
    throw NotCompiled("dot for CUDA devices");
}

template void axpy(float, const float*, float*, std::int64_t, const Context&);
template void axpy(double, const double*, double*, std::int64_t, const Context&);
template void scal(float, float*, std::int64_t, const Context&);
template void scal(double, double*, std::int64_t, const Context&);
template void copy(const float*, float*, std::int64_t, const Context&);
template void copy(const double*, double*, std::int64_t, const Context&);
template void dot(const float*, const float*, std::int64_t, void*, double*, const Context&);
template void dot(const double*, const double*, std::int64_t, void*, double*, const Context&);

}  // namespace rmsp::kernels::cuda
