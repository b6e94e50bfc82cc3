#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <core/value_types.hpp>
#include <rmsp/convert.hpp>
#include <rmsp/spgemm.hpp>

#include "core/first_error.hpp"

namespace rmsp {
namespace {

/// A matrix whose row i is written by fill(i, columns, values) into room for count(i) entries.
template <class T, class Count, class Fill>
CsrMatrix<T> by_rows(std::int64_t rows, std::int64_t cols, const Count& count, const Fill& fill)
{
    CsrMatrix<T> out;
    out.rows = rows;
    out.cols = cols;
    out.row_ptr.resize(static_cast<std::size_t>(rows) + 1);
    out.row_ptr[0] = 0;
    core::FirstError error;
#pragma omp parallel for schedule(dynamic, 1024) if (rows > 1024)
    for (std::int64_t row = 0; row < rows; ++row) {
        error.guard([&] { out.row_ptr[static_cast<std::size_t>(row) + 1] = count(row); });
    }
    error.rethrow();
    std::partial_sum(out.row_ptr.begin(), out.row_ptr.end(), out.row_ptr.begin());
    const auto nnz = static_cast<std::size_t>(out.row_ptr.back());
    out.values.resize(nnz);
    out.col_idx = IndexArray(index_type_for(cols), nnz);
    out.col_idx.visit([&](auto& columns) {
#pragma omp parallel for schedule(dynamic, 1024) if (rows > 1024)
        for (std::int64_t row = 0; row < rows; ++row) {
            const std::int64_t begin = out.row_ptr[static_cast<std::size_t>(row)];
            error.guard([&] { fill(row, columns.data() + begin, out.values.data() + begin); });
        }
    });
    error.rethrow();
    return out;
}

/// The entries of a row by column, in the order of the arrays where they are equal.
template <class T>
using Row = std::vector<std::pair<std::int64_t, T>>;

template <class T>
void sorted_row(const CsrView<T>& a, std::int64_t row, Row<T>& out)
{
    out.clear();
    for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
        out.emplace_back(a.col_idx[i], a.values[i]);
    }
    const auto by_column = [](const auto& l, const auto& r) { return l.first < r.first; };
    if (!std::is_sorted(out.begin(), out.end(), by_column)) {
        std::stable_sort(out.begin(), out.end(), by_column);
    }
}

/// Calls put(column, value) for each column of alpha X + beta Y in the row.
template <class T, class Put>
void add_row(T alpha, const Row<T>& x, T beta, const Row<T>& y, const Put& put)
{
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < x.size() || j < y.size()) {
        const std::int64_t column = j == y.size()   ? x[i].first
                                    : i == x.size() ? y[j].first
                                                    : std::min(x[i].first, y[j].first);
        T value = 0;
        for (; i < x.size() && x[i].first == column; ++i) {
            value += alpha * x[i].second;
        }
        for (; j < y.size() && y[j].first == column; ++j) {
            value += beta * y[j].second;
        }
        put(column, value);
    }
}

bool stays(double value, double threshold) { return !(std::fabs(value) < threshold); }

}  // namespace

template <class T>
CsrMatrix<T> transposed(const CsrView<T>& a)
{
    CscMatrix<T> csc = to_csc(a);
    CsrMatrix<T> out;
    out.rows = a.cols;
    out.cols = a.rows;
    out.row_ptr = std::move(csc.col_ptr);
    out.col_idx = std::move(csc.row_idx);
    out.values = std::move(csc.values);
    return out;
}

template <class T>
CsrMatrix<T> add(T alpha, const CsrView<T>& x, T beta, const CsrView<T>& y)
{
    if (x.rows != y.rows || x.cols != y.cols) {
        throw Error(ErrorCode::usage,
                    fmt::format("a sum of matrices of {} x {} and {} x {}", x.rows, x.cols, y.rows, y.cols));
    }
    validate(x);
    validate(y);
    const auto rows_of = [&](std::int64_t row, auto&& put) {
        thread_local Row<T> of_x;
        thread_local Row<T> of_y;
        sorted_row(x, row, of_x);
        sorted_row(y, row, of_y);
        add_row(alpha, of_x, beta, of_y, put);
    };
    return by_rows<T>(
        x.rows, x.cols,
        [&](std::int64_t row) {
            std::int64_t n = 0;
            rows_of(row, [&](std::int64_t, T) { ++n; });
            return n;
        },
        [&](std::int64_t row, auto* columns, T* values) {
            rows_of(row, [&](std::int64_t column, T value) {
                *columns++ = static_cast<std::remove_pointer_t<decltype(columns)>>(column);
                *values++ = value;
            });
        });
}

template <class T>
CsrMatrix<T> pruned(const CsrView<T>& a, double threshold)
{
    validate(a);
    return by_rows<T>(
        a.rows, a.cols,
        [&](std::int64_t row) {
            std::int64_t n = 0;
            for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
                n += stays(a.values[i], threshold) ? 1 : 0;
            }
            return n;
        },
        [&](std::int64_t row, auto* columns, T* values) {
            for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
                if (stays(a.values[i], threshold)) {
                    *columns++ = static_cast<std::remove_pointer_t<decltype(columns)>>(a.col_idx[i]);
                    *values++ = a.values[i];
                }
            }
        });
}

#define RMSP_INSTANTIATE(T)                                                \
    template CsrMatrix<T> transposed(const CsrView<T>&);                   \
    template CsrMatrix<T> add(T, const CsrView<T>&, T, const CsrView<T>&); \
    template CsrMatrix<T> pruned(const CsrView<T>&, double);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp
