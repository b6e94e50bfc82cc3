#pragma once

#include <memory>

#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {

/// The body of the kernel, which sell_reordered/ runs too, on permuted shards.
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_sell_blocks(const CsrShard<T>& shard, const RowStatistics& rows,
                                                     const Context& context);

}  // namespace rmsp::kernels
