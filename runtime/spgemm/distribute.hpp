#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/spgemm/product.hpp"

/// Products as matrices to multiply vectors with.
namespace rmsp::spgemm {

/// SparseProduct::distribute(); the parts begin at these rows, if there are some.
template <class T>
DistributedMatrix<T> distribute(const std::shared_ptr<ProductState<T>>& product, const DistributeOptions& options,
                                const std::vector<std::int64_t>& first_rows = {});
/// SparseProduct::renew().
template <class T>
void renew(const std::shared_ptr<ProductState<T>>& product, DistributedMatrix<T>& matrix);

}  // namespace rmsp::spgemm
