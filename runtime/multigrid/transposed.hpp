#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <variant>

#include <kernels/steps/convert/convert.hpp>

#include "runtime/plan/stored.hpp"

namespace rmsp::multigrid {

using kernels::DeviceArray;

template <class X>
std::int64_t bytes_of(const DeviceArray<X>& array)
{
    return static_cast<std::int64_t>(array.size() * sizeof(X));
}

/// The transpose of some rows of a matrix, in the memory of their device. Offsets are 64-bit where asked for.
template <class T>
struct Transposed {
    std::variant<DeviceArray<std::int32_t>, DeviceArray<std::int64_t>> row_ptr;
    DeviceArray<std::int32_t> col_idx;
    DeviceArray<T> values;
    /// Of each entry, among those of the rows. Kept, so that renewal need not sort.
    std::variant<DeviceArray<std::int32_t>, DeviceArray<std::int64_t>> from;

    /// Finds where entries are. \param rows, row_ptr  that are transposed, local, with `nnz` entries
    /// \param first_row  the number of the first of them \param lines  rows of the transpose
    void find(const std::int32_t* columns, std::int64_t nnz, std::int64_t first_row, std::int64_t rows,
              IndexView of_row_ptr, std::int64_t lines, bool wide, const kernels::Context& context)
    {
        if (wide) {
            find_as<std::int64_t>(columns, nnz, first_row, rows, of_row_ptr, lines, context);
        } else {
            find_as<std::int32_t>(columns, nnz, first_row, rows, of_row_ptr, lines, context);
        }
    }
    /// Takes values from those of the rows.
    void take(const T* of_rows, std::int64_t nnz, const kernels::Context& context)
    {
        values = DeviceArray<T>(*context.memory, static_cast<std::size_t>(nnz));
        std::visit(
            [&]<class Offset>(const DeviceArray<Offset>& at) {
                kernels::take_from(nnz, static_cast<const Offset*>(at.data()), of_rows, values.data(), context);
            },
            from);
    }
    IndexView pointers() const
    {
        return std::visit([](const auto& p) { return IndexView(p.data()); }, row_ptr);
    }
    /// Keeps what renewal needs alone.
    void forget(bool keep_row_ptr)
    {
        if (!keep_row_ptr) {
            std::visit([](auto& p) { p.reset(); }, row_ptr);
        }
        col_idx.reset();
        values.reset();
    }
    std::int64_t kept_bytes() const
    {
        const auto bytes = [](const auto& array) { return bytes_of(array); };
        return std::visit(bytes, from) + std::visit(bytes, row_ptr);
    }

private:
    template <class Offset>
    void find_as(const std::int32_t* columns, std::int64_t nnz, std::int64_t first_row, std::int64_t rows,
                 IndexView of_row_ptr, std::int64_t lines, const kernels::Context& context)
    {
        kernels::LineOrder<Offset> order = kernels::sort_by_line<Offset>(nnz, columns, 0, lines, context);
        col_idx = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(nnz));
        kernels::find_lines(nnz, static_cast<const Offset*>(order.from.data()), first_row, rows, of_row_ptr,
                            col_idx.data(), context);
        row_ptr = std::move(order.pointers);
        from = std::move(order.from);
    }
};

/// A matrix that the first device has, to be distributed to it alone.
template <class T>
plan::Stored<T> stored_on_device(std::int64_t rows, std::int64_t cols, IndexView row_ptr,
                                 const DeviceArray<std::int32_t>& col_idx, const DeviceArray<T>& values,
                                 const RowStatistics& lengths)
{
    plan::Stored<T> out = plan::stored(
        CsrView<T>{rows, cols, static_cast<std::int64_t>(values.size()), IndexView(), IndexView(), nullptr});
    out.by_lengths = true;
    out.device_row_ptr = row_ptr;
    out.device_rows = lengths;
    out.device_col_idx = IndexView(static_cast<const std::int32_t*>(col_idx.data()));
    out.device_values = values.data();
    return out;
}

/// A matrix that comes from the devices, whose columns are looked at where they arrive.
template <class T>
plan::Stored<T> stored_on_devices(std::int64_t rows, std::int64_t cols, std::int64_t nnz,
                                  plan::ResidentEntries<T>& entries)
{
    plan::Stored<T> out = plan::stored(CsrView<T>{rows, cols, nnz, IndexView(), IndexView(), nullptr});
    out.by_lengths = true;
    out.columns_on_devices = true;
    out.resident = &entries;
    return out;
}

}  // namespace rmsp::multigrid
