#pragma once

#include <memory>

#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {

/// The body of the kernel, which csc/to_csr.cu runs too, on the CSR that it makes.
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_nnz_split(const CsrShard<T>& shard, const RowStatistics& rows,
                                                   const Context& context);

}  // namespace rmsp::kernels
