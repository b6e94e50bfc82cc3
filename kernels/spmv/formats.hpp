#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <kernels/context.hpp>
#include <kernels/spmv/spmv.hpp>
#include <rmsp/kernel_info.hpp>
#include <rmsp/matrix.hpp>

/// SpMV of shards in CSC and COO. The operators are those of spmv.hpp: y = alpha A x + beta y with x of cols and y of rows
/// entries. A shard of columns gives a partial y, of the rows that it touches, which the caller adds to those of the other devices.
namespace rmsp::kernels {

/// Columns (or a run of nonzeros) of a matrix in the memory of one device. Not owned.
template <class T>
struct CscShard {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t nnz = 0;
    IndexView col_ptr;  ///< cols + 1 entries, from 0 to nnz
    const std::int32_t* row_idx = nullptr;
    const T* values = nullptr;
    std::int64_t first_row = 0;  ///< row_idx counts from here: row_idx[i] - first_row is an entry of y
};

/// A run of entries of a matrix in the memory of one device. Not owned.
template <class T>
struct CooShard {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t nnz = 0;
    CooOrder order = CooOrder::unsorted;
    std::int64_t first_row = 0;  ///< row_idx counts from here: row_idx[i] - first_row is an entry of y
    const std::int32_t* row_idx = nullptr;
    const std::int32_t* col_idx = nullptr;
    const T* values = nullptr;
};

/// Like SpmvKernel::prepare; these kernels need no statistics.
template <class T>
struct CscKernel {
    KernelInfo info;
    std::unique_ptr<SpmvOperator<T>> (*prepare)(const CscShard<T>& shard, const Context& context);
    bool streams = false;  ///< as SpmvKernel::streams
};
template <class T>
struct CooKernel {
    KernelInfo info;
    bool any_order;  ///< false: only entries that are sorted by row
    std::unique_ptr<SpmvOperator<T>> (*prepare)(const CooShard<T>& shard, const Context& context);
};

/// Every kernel of a format, in the order in which the automatic choice considers them.
template <class T>
std::span<const CscKernel<T>> spmv_csc_kernels();
template <class T>
std::span<const CooKernel<T>> spmv_coo_kernels();

/// As choose_spmv().
/// \throws Error(usage) as choose_spmv(), also if no kernel keeps the asked determinism
template <class T>
const CscKernel<T>& choose_spmv_csc(DeviceKind kind, const std::string& name, Determinism determinism);
template <class T>
const CooKernel<T>& choose_spmv_coo(DeviceKind kind, const std::string& name, Determinism determinism, CooOrder order);

// The bodies.
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_csc_reference(const CscShard<T>&, const Context&);
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_csc_openmp(const CscShard<T>&, const Context&);
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_csc_atomic(const CscShard<T>&, const Context&);
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_csc_to_csr(const CscShard<T>&, const Context&);
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_reference(const CooShard<T>&, const Context&);
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_openmp(const CooShard<T>&, const Context&);
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_scatter(const CooShard<T>&, const Context&);
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_segmented(const CooShard<T>&, const Context&);
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_atomic(const CooShard<T>&, const Context&);
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_to_csr(const CooShard<T>&, const Context&);

}  // namespace rmsp::kernels
