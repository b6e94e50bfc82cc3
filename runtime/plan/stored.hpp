#pragma once

#include <cstdint>
#include <vector>

#include <kernels/spmv/choose/features.hpp>
#include <rmsp/convert.hpp>
#include <rmsp/runtime.hpp>

#include "runtime/engine/rendezvous.hpp"
#include "runtime/engine/worker.hpp"
#include "runtime/plan/sides.hpp"

namespace rmsp::plan {

/// Entries of a matrix that are on the devices already.
template <class T>
class ResidentEntries {
public:
    virtual ~ResidentEntries() = default;
    /// Gets ready to bring them to the parts of a split, which are of whole rows; not on a worker.
    virtual void split(const Partition& partition) = 0;
    /// Queues the values of the worker's part to where its first one goes. Every worker of the job calls it.
    virtual void gather(engine::Worker& worker, engine::Rendezvous& meeting, T* to) = 0;
    /// Queues the columns of the worker's part to where its first one goes. Every worker of the job calls it.
    virtual void gather_columns(engine::Worker& worker, engine::Rendezvous& meeting, std::int32_t* to) = 0;
    /// Local row pointers of the worker's part, one more than its rows; 32-bit or 64-bit ones. Every worker of the job
    /// calls one of these two. Waits for the device.
    virtual void gather_row_ptr(engine::Worker& worker, engine::Rendezvous& meeting, std::int32_t* to) = 0;
    virtual void gather_row_ptr(engine::Worker& worker, engine::Rendezvous& meeting, std::int64_t* to) = 0;
};

/// A matrix M as it is split and stored, in the caller's arrays: by rows, so that a matrix by columns is its transpose.
/// Coordinates have row indices instead of row pointers, unless they are streamed.
template <class T>
struct Stored : CsrView<T> {
    Format format = Format::csr;        ///< the caller's
    CooOrder order = CooOrder::by_row;  ///< of M: by_row or unsorted
    bool transposed = false;            ///< M is the transpose of the caller's matrix
    bool coordinates = false;           ///< row indices instead of row pointers
    IndexView row_idx;
    /// Where the values are if `values` is null, and the columns if those are on the devices alone.
    ResidentEntries<T>* resident = nullptr;
    /// Where the caller's values are if they are in the memory of a GPU; `values` is null then.
    const T* device_values = nullptr;
    /// The columns there as well, of 32 bits; `col_idx` is a copy on the host. Null: nothing there to be copied.
    IndexView device_col_idx{};
    /// The columns are on the devices alone (CSR), and are looked at where they are once each device has its part. A
    /// device that gets the matrix whole counts as touching every column.
    bool columns_on_devices = false;
    /// As many devices get a part as pay, also where the runtime's were named: of what the caller did not distribute.
    bool on_what_pays = false;
    /// Kernels are chosen by the lengths of rows alone, among those that need no format of their own.
    bool by_lengths = false;
    /// Set: the row pointers are on the devices alone, too, and `resident` brings them; entries before the rows
    /// `first_rows`, and all of them at the end. With `columns_on_devices` and `by_lengths`.
    std::vector<std::int64_t> first_entries{};
    /// Set instead, where the planner is to cut rows that are on the devices alone: entries before row 0, row
    /// `sampled_rows`, row 2 `sampled_rows` and so on, and all of them at the end. Parts begin at these rows.
    std::vector<std::int64_t> sampled_entries{};
    std::int64_t sampled_rows = 0;
    /// Set: row pointers, from 0, are there too, and the host has no array at all. The first device, where they are,
    /// gets the matrix whole (CSR). It counts as touching every column, and its kernel is chosen by `device_rows`, as
    /// with `by_lengths`.
    IndexView device_row_ptr{};
    RowStatistics device_rows{};
    /// First rows of the parts of another matrix, if those of M are to begin there (CSR); empty: the planner cuts.
    std::vector<std::int64_t> first_rows{};
    /// First entry that each device is to have of a vector along the columns of M, which is not square, and its size,
    /// if such vectors are those of another matrix; empty: column_slices(plan).
    std::vector<std::int64_t> column_slices{};

    bool only_on_device() const noexcept { return device_row_ptr.data() != nullptr; }
    /// Its vectors are on the devices, too, as a rule: room for those of the host is taken when one comes.
    bool from_devices() const noexcept { return resident != nullptr || only_on_device(); }
    bool rows_on_devices() const noexcept { return !first_entries.empty() || !sampled_entries.empty(); }
};

template <class T>
Stored<T> stored(const CsrView<T>& a)
{
    return {a, Format::csr, CooOrder::by_row, false, false, {}, nullptr};
}
template <class T>
Stored<T> stored(const CscView<T>& a)
{
    return {transpose(a), Format::csc, CooOrder::by_row, true, false, {}, nullptr};
}
/// Finds the order of the entries, which must be valid.
template <class T>
Stored<T> stored(const CooView<T>& a)
{
    const CooOrder order = coo_order(a.nnz, a.row_idx, a.col_idx);
    if (order == CooOrder::by_column) {
        return {{a.cols, a.rows, a.nnz, {}, a.row_idx, a.values},
                Format::coo,
                CooOrder::by_row,
                true,
                true,
                a.col_idx,
                nullptr};
    }
    return {{a.rows, a.cols, a.nnz, {}, a.col_idx, a.values}, Format::coo, order, false, true, a.row_idx, nullptr};
}

/// Slices of a vector along M's columns, as asked for or as column_slices(plan).
template <class T>
std::vector<std::int64_t> column_slices(const Plan& plan, const Stored<T>& m)
{
    return m.column_slices.empty() ? column_slices(plan) : m.column_slices;
}

}  // namespace rmsp::plan
