#pragma once

#include <kernels/spgemm/spgemm.hpp>

/// What count_products() calls on CUDA devices.
namespace rmsp::kernels::cuda {

template <class T>
void count_products(const CsrShard<T>& a, const CsrShard<T>& b, std::int64_t* out, const Context& context);

}  // namespace rmsp::kernels::cuda
