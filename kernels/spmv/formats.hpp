#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <kernels/context.hpp>
#include <kernels/spmv/spmv.hpp>
#include <rmsp/kernel_info.hpp>
#include <rmsp/matrix.hpp>

/// SpMV of shards in CSC and COO. The operators are those of spmv.hpp: y = alpha A x + beta y with x of cols and y of
/// rows entries. A shard of columns gives a partial y, of the rows that it touches, which the caller adds to those of
/// the other devices.
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

/// All that is known of a kernel of columns: like SpmvKernel, but it needs no statistics.
template <class T>
struct CscKernel {
    KernelInfo info;
    std::unique_ptr<SpmvOperator<T>> (*body)(const CscShard<T>&, const Context&) = nullptr;
    bool automatic = true;  ///< whether "auto" takes it, if none before it in the table is taken
    bool sorts = false;     ///< prepare() sorts a copy by row; the others multiply the shard's arrays

    std::unique_ptr<SpmvOperator<T>> prepare(const CscShard<T>& shard, const Context& context) const
    {
        return prepare_with(info, body, shard, context);
    }
};

constexpr bool no_order(CooOrder) { return false; }
constexpr bool any_order(CooOrder) { return true; }
constexpr bool by_row_only(CooOrder order) { return order == CooOrder::by_row; }

/// All that is known of a kernel of coordinates.
template <class T>
struct CooKernel {
    KernelInfo info;
    std::unique_ptr<SpmvOperator<T>> (*body)(const CooShard<T>&, const Context&) = nullptr;
    bool (*supports)(CooOrder) = any_order;   ///< whether it can multiply entries in that order
    bool (*automatic)(CooOrder) = any_order;  ///< whether "auto" takes it for that order, as CscKernel::automatic
    bool sorts = false;                       ///< as CscKernel::sorts, unless the entries are sorted by row

    std::unique_ptr<SpmvOperator<T>> prepare(const CooShard<T>& shard, const Context& context) const
    {
        return prepare_with(info, body, shard, context);
    }
};

/// Every kernel of a format, in the order in which the automatic choice considers them.
template <class T>
std::span<const CscKernel<T>> spmv_csc_kernels();
template <class T>
std::span<const CooKernel<T>> spmv_coo_kernels();

/// The first kernel for that kind of device that sorts (CscKernel::sorts), or the first that does not; "auto" if there
/// is none.
template <class Kernel>
std::string first_that_sorts(std::span<const Kernel> table, DeviceKind kind, bool sorts)
{
    for (const Kernel& kernel : table) {
        if (kernel.info.device == kind && kernel.sorts == sorts) {
            return kernel.info.name;
        }
    }
    return "auto";
}

/// As choose_spmv().
/// \throws Error(usage) as choose_spmv(), also if no kernel keeps the asked determinism
template <class T>
const CscKernel<T>& choose_spmv_csc(DeviceKind kind, const std::string& name, Determinism determinism);
template <class T>
const CooKernel<T>& choose_spmv_coo(DeviceKind kind, const std::string& name, Determinism determinism, CooOrder order);

}  // namespace rmsp::kernels
