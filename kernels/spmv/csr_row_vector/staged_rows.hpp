#pragma once

#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {

/// csr-row-vector of many short rows: see staged_tuning.
/// \returns null where the arrays are not aligned, the nonzeros are too many to number in 32 bits, or the GPU has no
/// bulk copies
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_staged_rows(const CsrShard<T>& shard, const RowStatistics& rows,
                                                     const Context& context);

}  // namespace rmsp::kernels
