#include <kernels/spgemm/bodies.hpp>
#include <rmsp/error.hpp>

// What stands in for the CUDA body in a build without CUDA.
namespace rmsp::kernels::cuda {

template <class T>
void count_products(const CsrShard<T>&, const CsrShard<T>&, std::int64_t*, const Context&)
{
    throw NotCompiled("count_products for CUDA devices");
}
template void count_products(const CsrShard<float>&, const CsrShard<float>&, std::int64_t*, const Context&);
template void count_products(const CsrShard<double>&, const CsrShard<double>&, std::int64_t*, const Context&);

}  // namespace rmsp::kernels::cuda
