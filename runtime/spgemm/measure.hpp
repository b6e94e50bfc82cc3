#pragma once

#include <cstdint>
#include <vector>

#include "runtime/spgemm/product.hpp"

namespace rmsp::spgemm {

/// SparseProduct::measure().
template <class T>
std::vector<Measurement> measure(ProductState<T>& state, std::int64_t warmup, std::int64_t iterations, T alpha);

}  // namespace rmsp::spgemm
