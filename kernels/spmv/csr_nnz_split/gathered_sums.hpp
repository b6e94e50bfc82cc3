#pragma once

#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {

/// y = alpha A x + beta y where every value of A is 1: csr-nnz-split without values, for kernels that add up partial
/// sums. shard.values is not read.
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_gathered_sums(const CsrShard<T>& shard, const Context& context);

}  // namespace rmsp::kernels
