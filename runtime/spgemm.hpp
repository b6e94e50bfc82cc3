#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <kernels/spgemm/spgemm.hpp>
#include <rmsp/spgemm.hpp>

#include "runtime/memory_budget.hpp"
#include "runtime/state.hpp"

/// Behind SparseProduct.
namespace rmsp::detail {

/// What a row of C costs besides its products, in products.
inline constexpr std::int64_t spgemm_row_work = 8;

/// work[i]: products of the rows of A before row i, plus spgemm_row_work for each of them. rows + 1 entries; cutting them evenly
/// balances the devices.
/// \throws Error(usage) if the products do not fit 64 bits
template <class T>
HostVector<std::int64_t> count_work(const CsrView<T>& a, const CsrView<T>& b);

inline std::int64_t products_of(const HostVector<std::int64_t>& work, std::int64_t first_row, std::int64_t end_row)
{
    return work[static_cast<std::size_t>(end_row)] - work[static_cast<std::size_t>(first_row)] -
           spgemm_row_work * (end_row - first_row);
}

/// Consecutive rows of a matrix that were selected.
struct RowRun {
    std::int64_t first = 0;
    std::int64_t end = 0;
    std::int64_t nnz_before = 0;  ///< entries of the runs before
    bool operator==(const RowRun&) const = default;
};

/// Some rows of a matrix, in order. The device that gets them keeps the matrix's row numbers: the others are empty there.
struct RowSelection {
    std::vector<RowRun> runs;
    std::int64_t rows = 0;
    std::int64_t nnz = 0;
};

/// The rows of B that the rows [first_row, end_row) of A touch; all rows between the first and the last of them where hardly more
/// entries are sent that way.
template <class T>
RowSelection select_rows(const CsrView<T>& a, std::int64_t first_row, std::int64_t end_row, const CsrView<T>& b,
                         int threads);

/// Where the entries of rows [first_row, end_row) of A are among the selected ones of B, or -1: A and B are one matrix, and all
/// these rows were selected.
template <class T>
std::int64_t position_in_b(const CsrView<T>& a, const CsrView<T>& b, std::int64_t first_row, std::int64_t end_row,
                           const RowSelection& b_rows);

/// All rows [first_row, end_row).
template <class T>
RowSelection consecutive(const CsrView<T>& a, std::int64_t first_row, std::int64_t end_row);

/// Rows of a matrix in the memory of a device.
template <class T>
struct DeviceRows {
    kernels::DeviceArray<std::byte> row_ptr;
    kernels::DeviceArray<std::int32_t> col_idx;
    kernels::DeviceArray<T> values;
    kernels::CsrShard<T> shard;  ///< of the arrays above, or of another matrix's columns and values
    kernels::RowRange filled;    ///< of these rows those that were selected are here
    std::int64_t selected = 0;
    std::int64_t in_b = -1;  ///< of A: its rows are those of B from this one on, in B's arrays
};

/// Sends local row pointers of the rows [first_row, first_row + rows) of a matrix, 32-bit where the entries allow; rows that are not
/// selected are empty.
template <class T>
IndexView upload_row_pointers(runtime::Worker& worker, MemoryBudget& memory, const CsrView<T>& matrix,
                              const RowSelection& selection, std::int64_t first_row, std::int64_t rows,
                              kernels::DeviceArray<std::byte>& storage);
/// The same with the selected rows' entries: a matrix of its own.
template <class T>
void upload_rows(runtime::Worker& worker, MemoryBudget& memory, const CsrView<T>& matrix, const RowSelection& selection,
                 std::int64_t first_row, std::int64_t rows, DeviceRows<T>& out);
/// Sends the selected rows' values alone.
template <class T>
void upload_values(runtime::Worker& worker, IndexView row_ptr, const RowSelection& selection, const T* from, T* to);

/// Rows of C that went to the host.
template <class T>
struct HostRows {
    std::int64_t first_row = 0;
    HostVector<std::int64_t> row_ptr;  ///< from 0
    HostVector<std::int32_t> col_idx;
    HostVector<T> values;
};

/// One device's part of a product. Made, used and freed on the device's worker.
template <class T>
struct ProductPart {
    ProductPart(std::unique_ptr<kernels::Memory> memory, std::int64_t limit)
        : pool(std::move(memory)), budget(*pool, limit, "a product")
    {
    }

    std::unique_ptr<kernels::Memory> pool;
    MemoryBudget budget;  ///< of the pool
    std::int64_t first_row = 0;
    std::int64_t end_row = 0;
    RowSelection b_rows;
    DeviceRows<T> a;
    DeviceRows<T> b;
    std::unique_ptr<kernels::SpgemmOperator<T>> product;
    kernels::DeviceArray<std::int32_t> col_idx;  ///< of C
    kernels::DeviceArray<T> values;
    bool columns_known = false;       ///< col_idx is filled
    std::vector<HostRows<T>> chunks;  ///< instead, where the part is computed in runs
};

template <class T>
struct ProductState {
    ~ProductState();

    std::shared_ptr<RuntimeState> runtime;
    CsrView<T> a;  ///< the caller's; read after construction by chunked parts only
    CsrView<T> b;
    SpgemmOptions options;
    SpgemmPlan plan;
    HostVector<std::int64_t> work;
    std::vector<std::unique_ptr<ProductPart<T>>> parts;
    std::vector<PhaseTimes> phases;
    bool computed = false;
};

/// Counts, cuts and estimates; touches no device. `limits` are of each device's memory, 0 where there is none; `selections`, if not
/// null, gets the rows of B for each device.
template <class T>
SpgemmPlan make_spgemm_plan(const RuntimeState& runtime, const CsrView<T>& a, const CsrView<T>& b,
                            const SpgemmOptions& options, const std::vector<std::int64_t>& limits,
                            HostVector<std::int64_t>& work, std::vector<RowSelection>* selections);

/// Work on one device's part; every worker of the job calls it.
template <class T>
using DeviceBody = std::function<void(runtime::Worker&, ProductPart<T>&, runtime::Rendezvous&)>;

/// Runs the body on every device, waits, and returns how long each took.
template <class T>
std::vector<double> on_devices(ProductState<T>& state, const DeviceBody<T>& body);

/// The structure of a product of two matrices on the device, by the kernel that the options name.
template <class T>
std::unique_ptr<kernels::SpgemmOperator<T>> prepare_product(runtime::Worker& worker, MemoryBudget& memory,
                                                            const SpgemmOptions& options, const DeviceRows<T>& a,
                                                            const DeviceRows<T>& b);

/// Queues the values of C, and its columns if they are not there yet.
template <class T>
void fill_or_renew(ProductPart<T>& part, runtime::Worker& worker, T alpha);

/// \throws Error(usage) for a product that was never made
template <class T>
ProductState<T>& checked(const std::shared_ptr<ProductState<T>>& state);

/// Cores of a worker for loops on the host.
int threads_of(runtime::Worker& worker);

/// options.memory_limit for a device with so many bytes free (0: unknown).
std::int64_t spgemm_limit(const SpgemmOptions& options, std::int64_t free_bytes);

}  // namespace rmsp::detail
