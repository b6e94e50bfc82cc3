#pragma once

#include <memory>

#include "runtime/spgemm/product.hpp"

/// Products as factors of products.
namespace rmsp::spgemm {

/// \throws Error(usage) for a product of another runtime than that one, or that has not been computed; `name` says
/// which factor it is
template <class T>
std::unique_ptr<ResidentFactor<T>> product_factor(const RuntimeState& runtime,
                                                  const std::shared_ptr<ProductState<T>>& product, const char* name);

}  // namespace rmsp::spgemm
