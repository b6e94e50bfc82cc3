#pragma once

#include <memory>

#include "runtime/spgemm/product.hpp"

/// Products as matrices to multiply vectors with.
namespace rmsp::spgemm {

/// SparseProduct::distribute().
template <class T>
DistributedMatrix<T> distribute(const std::shared_ptr<ProductState<T>>& product, const DistributeOptions& options);
/// SparseProduct::renew().
template <class T>
void renew(const std::shared_ptr<ProductState<T>>& product, DistributedMatrix<T>& matrix);

}  // namespace rmsp::spgemm
