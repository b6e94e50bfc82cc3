#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <kernels/spgemm/spgemm.hpp>
#include <rmsp/matrix.hpp>

#include "runtime/engine/memory_budget.hpp"
#include "runtime/engine/worker.hpp"

/// Which rows of a matrix a device gets, and how they get there.
namespace rmsp::spgemm {

/// Whether B is on the devices, and its entries not on the host.
template <class T>
bool b_is_on_devices(const CsrView<T>& b)
{
    return b.col_idx.data() == nullptr && b.nnz > 0;
}

/// Consecutive rows of a matrix that were selected.
struct RowRun {
    std::int64_t first = 0;
    std::int64_t end = 0;
    std::int64_t nnz_before = 0;  ///< entries of the runs before
    bool operator==(const RowRun&) const = default;
};

/// Some rows of a matrix, in order. The device that gets them keeps the matrix's row numbers: the others are empty
/// there.
struct RowSelection {
    std::vector<RowRun> runs;
    std::int64_t rows = 0;
    std::int64_t nnz = 0;
};

/// The rows of B that the rows [first_row, end_row) of A touch; all rows between the first and the last of them where
/// hardly more entries are sent that way, or if the columns of B are not on the host.
template <class T>
RowSelection select_rows(const CsrView<T>& a, std::int64_t first_row, std::int64_t end_row, const CsrView<T>& b,
                         int threads);

/// Where the entries of rows [first_row, end_row) of A are among the selected ones of B, or -1: A and B are one matrix,
/// and all these rows were selected.
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

    void describe(const RowSelection& rows, const kernels::CsrShard<T>& of_them)
    {
        shard = of_them;
        selected = rows.rows;
        filled =
            rows.runs.empty() ? kernels::RowRange{} : kernels::RowRange{rows.runs.front().first, rows.runs.back().end};
    }
};

/// Sends local row pointers of the rows [first_row, first_row + rows) of a matrix, 32-bit where the entries allow; rows
/// that are not selected are empty.
template <class T>
IndexView upload_row_pointers(engine::Worker& worker, engine::MemoryBudget& memory, const CsrView<T>& matrix,
                              const RowSelection& selection, std::int64_t first_row, std::int64_t rows,
                              kernels::DeviceArray<std::byte>& storage);
/// Uploads the selected rows with their entries: a matrix of its own.
template <class T>
void upload_rows(engine::Worker& worker, engine::MemoryBudget& memory, const CsrView<T>& matrix,
                 const RowSelection& selection, std::int64_t first_row, std::int64_t rows, DeviceRows<T>& out);
/// Sends rows of A, unless they came with B, of which b_rows are on the device.
template <class T>
void upload_a(engine::Worker& worker, engine::MemoryBudget& memory, const CsrView<T>& a, const CsrView<T>& b,
              std::int64_t first_row, std::int64_t end_row, const RowSelection& b_rows, const DeviceRows<T>& device_b,
              DeviceRows<T>& out);
/// Sends the selected rows' values alone.
template <class T>
void upload_values(engine::Worker& worker, IndexView row_ptr, const RowSelection& selection, const T* from, T* to);

/// One of the row pointers in the device's memory; waits.
std::int64_t pointer_at(engine::Worker& worker, IndexView row_ptr, std::int64_t row);

/// Rows of a factor on one device.
template <class T>
struct FactorPart {
    IndexView row_ptr;  ///< local
    const std::int32_t* col_idx = nullptr;
    const T* values = nullptr;
};

}  // namespace rmsp::spgemm
