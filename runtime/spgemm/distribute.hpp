#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/spgemm/product.hpp"

/// Products as matrices to multiply vectors with.
namespace rmsp::spgemm {

/// A matrix of what is on the devices of a runtime; `c` may go afterwards. \param first_rows  of the parts; empty: the
/// planner cuts
template <class T>
DistributedMatrix<T> distribute(const std::shared_ptr<RuntimeState>& runtime, ResidentFactor<T>& c,
                                const DistributeOptions& options, const std::vector<std::int64_t>& first_rows = {});
/// Gives such a matrix the values that c has now.
/// \throws Error(usage) for one of another structure, as far as can be seen
template <class T>
void renew(const RuntimeState& runtime, ResidentFactor<T>& c, DistributedMatrix<T>& matrix);

/// SparseProduct::distribute(); the parts begin at these rows, if there are some.
template <class T>
DistributedMatrix<T> distribute(const std::shared_ptr<ProductState<T>>& product, const DistributeOptions& options,
                                const std::vector<std::int64_t>& first_rows = {});
/// SparseProduct::renew().
template <class T>
void renew(const std::shared_ptr<ProductState<T>>& product, DistributedMatrix<T>& matrix);

}  // namespace rmsp::spgemm
