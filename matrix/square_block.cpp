#include "matrix/square_block.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/subscript.hpp"
#include "core/value_types.hpp"
#include "matrix/for_each_row.hpp"

namespace rmsp::matrix {
namespace {

using core::at;

constexpr std::int64_t rows_each = 1024;

/// Calls put(row, columns) for each row of the block, columns rising, each once, and with the diagonal.
template <class T, class Put>
void for_each_pattern_row(const CsrView<T>& a, std::int64_t first, std::int64_t rows, const Put& put)
{
    a.col_idx.visit([&](const auto* col) {
        for_row_ranges(rows, rows_each, [&](std::int64_t begin, std::int64_t end) {
            std::vector<std::int32_t> columns;
            for (std::int64_t row = begin; row < end; ++row) {
                columns.assign(1, static_cast<std::int32_t>(row));
                for (std::int64_t k = a.row_ptr[first + row]; k < a.row_ptr[first + row + 1]; ++k) {
                    const std::int64_t column = col[k] - first;
                    if (column >= 0 && column < rows) {
                        columns.push_back(static_cast<std::int32_t>(column));
                    }
                }
                std::sort(columns.begin(), columns.end());
                columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
                put(row, columns);
            }
        });
    });
}

}  // namespace

template <class T>
SquareBlock<T> square_block(const CsrView<T>& a, std::int64_t first, std::int64_t end)
{
    if (first < 0 || first > end || end > std::min(a.rows, a.cols) ||
        end - first > std::numeric_limits<std::int32_t>::max()) {
        throw Error(ErrorCode::usage, fmt::format("a square block of rows and columns {} to {} of a {} x {} matrix",
                                                  first, end, a.rows, a.cols));
    }
    SquareBlock<T> block;
    block.rows = end - first;
    block.row_ptr.resize(at(block.rows) + 1);
    block.diagonal.resize(at(block.rows));
    block.row_ptr.front() = 0;
    for_each_pattern_row(a, first, block.rows, [&](std::int64_t row, const std::vector<std::int32_t>& columns) {
        block.row_ptr[at(row) + 1] = static_cast<std::int64_t>(columns.size());
    });
    std::partial_sum(block.row_ptr.begin(), block.row_ptr.end(), block.row_ptr.begin());
    block.col_idx.resize(at(block.row_ptr.back()));
    block.values.resize(at(block.row_ptr.back()));
    for_each_pattern_row(a, first, block.rows, [&](std::int64_t row, const std::vector<std::int32_t>& columns) {
        const std::int64_t begin = block.row_ptr[at(row)];
        std::copy(columns.begin(), columns.end(), block.col_idx.begin() + begin);
        block.diagonal[at(row)] = begin + (std::lower_bound(columns.begin(), columns.end(), row) - columns.begin());
    });
    renew(a, first, block);
    return block;
}

template <class T>
void renew(const CsrView<T>& a, std::int64_t first, SquareBlock<T>& block)
{
    a.col_idx.visit([&](const auto* col) {
        for_each_row(block.rows, [&](std::int64_t row) {
            const auto begin = block.col_idx.begin() + block.row_ptr[at(row)];
            const auto end = block.col_idx.begin() + block.row_ptr[at(row) + 1];
            std::fill(block.values.begin() + block.row_ptr[at(row)], block.values.begin() + block.row_ptr[at(row) + 1],
                      T{0});
            for (std::int64_t k = a.row_ptr[first + row]; k < a.row_ptr[first + row + 1]; ++k) {
                const std::int64_t column = col[k] - first;
                if (column >= 0 && column < block.rows) {
                    block.values[at(std::lower_bound(begin, end, column) - block.col_idx.begin())] += a.values[k];
                }
            }
        });
    });
}

template <class T>
void add_outside_norms(const CsrView<T>& a, std::int64_t first, SquareBlock<T>& block)
{
    a.col_idx.visit([&](const auto* col) {
        for_each_row(block.rows, [&](std::int64_t row) {
            double sum = 0;
            for (std::int64_t k = a.row_ptr[first + row]; k < a.row_ptr[first + row + 1]; ++k) {
                const std::int64_t column = col[k] - first;
                sum += column >= 0 && column < block.rows ? 0 : std::fabs(double{a.values[k]});
            }
            T& own = block.values[at(block.diagonal[at(row)])];
            own += static_cast<T>(own < 0 ? -sum : sum);
        });
    });
}

#define RMSP_INSTANTIATE(T)                                                              \
    template SquareBlock<T> square_block(const CsrView<T>&, std::int64_t, std::int64_t); \
    template void renew(const CsrView<T>&, std::int64_t, SquareBlock<T>&);               \
    template void add_outside_norms(const CsrView<T>&, std::int64_t, SquareBlock<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::matrix
