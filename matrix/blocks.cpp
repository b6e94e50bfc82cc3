#include "matrix/blocks.hpp"

#include <limits>
#include <string>

#include <fmt/format.h>

#include <core/value_types.hpp>
#include <rmsp/convert.hpp>
#include <rmsp/error.hpp>

#include "core/enumerator.hpp"
#include "matrix/csr_build.hpp"

namespace rmsp {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Calls f(position in the CSR matrix, block, its row, row and column in it) for all values of a row of blocks.
template <class F>
void for_each_value(const matrix::BlockLayout& layout, std::int64_t row, const F& f)
{
    const std::int64_t first = layout.row_ptr[at(row)];
    const std::int64_t count = layout.row_ptr[at(row) + 1] - first;
    for (std::int64_t r = 0; r < layout.height; ++r) {
        std::int64_t position = first * layout.height * layout.width + r * count * layout.width;
        for (std::int64_t k = first; k < first + count; ++k) {
            for (std::int64_t c = 0; c < layout.width; ++c) {
                f(position++, k, r, c);
            }
        }
    }
}

}  // namespace

namespace matrix {

template <class T>
BlockLayout layout_of(const BsrView<T>& a)
{
    BlockLayout layout{HostVector<std::int64_t>(at(a.rows) + 1), a.height, a.width, a.order};
    for (std::int64_t i = 0; i <= a.rows; ++i) {
        layout.row_ptr[at(i)] = a.row_ptr[i] - a.base;
    }
    return layout;
}

template <class T>
void to_rows(const BlockLayout& layout, const T* values, T* out)
{
    const auto rows = static_cast<std::int64_t>(layout.row_ptr.size()) - 1;
    const std::int64_t size = layout.height * layout.width;
    const bool by_row = layout.order == BlockOrder::by_row;
#pragma omp parallel for schedule(static) if (rows > 1024)
    for (std::int64_t i = 0; i < rows; ++i) {
        for_each_value(layout, i, [&](std::int64_t position, std::int64_t k, std::int64_t r, std::int64_t c) {
            out[position] = values[k * size + (by_row ? r * layout.width + c : c * layout.height + r)];
        });
    }
}

#define RMSP_INSTANTIATE(T)                            \
    template BlockLayout layout_of(const BsrView<T>&); \
    template void to_rows(const BlockLayout&, const T*, T*);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace matrix

template <class T>
void validate(const BsrView<T>& a)
{
    const auto fail = [&](const std::string& what) {
        throw Error(ErrorCode::usage, fmt::format("invalid BSR matrix of {} x {} blocks of {} x {}, {} stored: {}",
                                                  a.rows, a.cols, a.height, a.width, a.blocks, what));
    };
    core::require_enumerator("BsrView::order", a.order, BlockOrder::by_column);
    if (a.rows < 0 || a.cols < 0 || a.blocks < 0 || a.height < 1 || a.width < 1) {
        fail("sizes must not be negative, and blocks have at least one row and column");
    }
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() - 1;
    if (a.rows > most / a.height || a.cols > most / a.width || a.width > most / a.height ||
        a.blocks > most / (a.height * a.width)) {
        fail("the sizes are too large for 64 bits");
    }
    if (a.base != 0 && a.base != 1) {
        fail(fmt::format("base is {}; indices count from 0 or 1", a.base));
    }
    if (a.row_ptr.data() == nullptr) {
        fail("the row pointers are null");
    }
    if (a.blocks > 0 && (a.col_idx.data() == nullptr || a.values == nullptr)) {
        fail(a.values == nullptr ? "the values are null" : "the column indices are null");
    }
    if (a.row_ptr[0] != a.base) {
        fail(fmt::format("row_ptr[0] is {}, not {}", a.row_ptr[0], a.base));
    }
    for (std::int64_t i = 0; i < a.rows; ++i) {
        if (a.row_ptr[i + 1] < a.row_ptr[i]) {
            fail(fmt::format("row {} of blocks starts at block {} and ends at block {}", i, a.row_ptr[i],
                             a.row_ptr[i + 1]));
        }
    }
    if (a.row_ptr[a.rows] - a.base != a.blocks) {
        fail(fmt::format("row_ptr[{}] is {}", a.rows, a.row_ptr[a.rows]));
    }
    for (std::int64_t k = 0; k < a.blocks; ++k) {
        const std::int64_t column = a.col_idx[k];
        if (column < a.base || column >= a.cols + a.base) {
            fail(fmt::format("block {} has column {}", k, column));
        }
    }
}

template <class T>
CsrMatrix<T> to_csr(const BsrView<T>& a)
{
    validate(a);
    const matrix::BlockLayout layout = matrix::layout_of(a);
    const std::int64_t size = a.height * a.width;
    CsrMatrix<T> out = matrix::allocate_csr<T>(a.rows * a.height, a.cols * a.width, a.blocks * size);
    out.row_ptr[0] = 0;
    out.col_idx.visit([&](auto& columns) {
        using Column = typename std::decay_t<decltype(columns)>::value_type;
#pragma omp parallel for schedule(static) if (a.rows > 1024)
        for (std::int64_t i = 0; i < a.rows; ++i) {
            const std::int64_t first = layout.row_ptr[at(i)];
            const std::int64_t count = layout.row_ptr[at(i) + 1] - first;
            for (std::int64_t r = 0; r < a.height; ++r) {
                out.row_ptr[at(i * a.height + r) + 1] = first * size + (r + 1) * count * a.width;
            }
            for_each_value(layout, i, [&](std::int64_t position, std::int64_t k, std::int64_t, std::int64_t c) {
                columns[at(position)] = static_cast<Column>((a.col_idx[k] - a.base) * a.width + c);
            });
        }
    });
    matrix::to_rows(layout, a.values, out.values.data());
    return out;
}

#define RMSP_INSTANTIATE(T)                    \
    template void validate(const BsrView<T>&); \
    template CsrMatrix<T> to_csr(const BsrView<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp
