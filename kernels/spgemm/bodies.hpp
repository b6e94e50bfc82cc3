#pragma once

#include <kernels/spgemm/spgemm.hpp>

/// The CUDA body of count_products(); a stand-in that throws NotCompiled in a build without CUDA.
namespace rmsp::kernels::cuda {

template <class T>
void count_products(const CsrShard<T>& a, const CsrShard<T>& b, std::int64_t* out, const Context& context);

}  // namespace rmsp::kernels::cuda
