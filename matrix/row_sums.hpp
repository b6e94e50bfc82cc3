#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <rmsp/host_vector.hpp>
#include <rmsp/matrix.hpp>

#include "matrix/for_each_row.hpp"

namespace rmsp::matrix {

/// Entries of a row, as a list of interpolation_row.hpp.
struct RowEntries {
    std::int64_t size() const { return static_cast<std::int64_t>(entries.size()); }
    std::int32_t column(std::int64_t i) const { return entries[static_cast<std::size_t>(i)].first; }
    double entry(std::int64_t i) const { return entries[static_cast<std::size_t>(i)].second; }
    void set(std::int64_t i, std::int32_t column, double value)
    {
        entries[static_cast<std::size_t>(i)] = {column, value};
    }
    void resize(std::int64_t n) { entries.resize(static_cast<std::size_t>(n)); }

    std::vector<std::pair<std::int32_t, double>> entries;
};

/// One row of a sparse matrix while it is added up: entries in the order in which their columns came first. set() and
/// resize() must leave all columns where they are.
class RowSum : public RowEntries {
public:
    explicit RowSum(std::int64_t columns) : place_(static_cast<std::size_t>(columns), -1) {}

    void clear()
    {
        for (const auto& [column, value] : entries) {
            place_[static_cast<std::size_t>(column)] = -1;
        }
        entries.clear();
    }
    bool has(std::int32_t column) const { return place_[static_cast<std::size_t>(column)] >= 0; }
    void add(std::int32_t column, double value)
    {
        std::int32_t& place = place_[static_cast<std::size_t>(column)];
        if (place < 0) {
            place = static_cast<std::int32_t>(entries.size());
            entries.emplace_back(column, 0.0);
        }
        entries[static_cast<std::size_t>(place)].second += value;
    }
    /// 0 where there is none.
    double value(std::int32_t column) const
    {
        return has(column) ? entries[static_cast<std::size_t>(place_[static_cast<std::size_t>(column)])].second : 0.0;
    }

private:
    std::vector<std::int32_t> place_;
};

/// f(row, sum) for all rows, in parallel, with a RowSum of so many columns for each stretch of rows; few stretches,
/// since each touches memory for all columns.
template <class F>
void for_row_sums(std::int64_t rows, std::int64_t columns, const F& f)
{
    constexpr std::int64_t stretches = 64;
    for_row_ranges(rows, std::max<std::int64_t>(2048, rows / stretches + 1), [&](std::int64_t begin, std::int64_t end) {
        RowSum sum(columns);
        for (std::int64_t row = begin; row < end; ++row) {
            sum.clear();
            f(row, sum);
        }
    });
}

/// The matrix whose rows f(row, sum) leaves in sum.entries; columns are sorted. Computed once, in parallel.
template <class T, class F>
CsrMatrix<T> collect_rows(std::int64_t rows, std::int64_t cols, const F& f)
{
    std::vector<std::vector<std::pair<std::int32_t, double>>> found(static_cast<std::size_t>(rows));
    for_row_sums(rows, cols, [&](std::int64_t row, RowSum& sum) {
        f(row, sum);
        auto& own = found[static_cast<std::size_t>(row)];
        own.assign(sum.entries.begin(), sum.entries.end());
        std::sort(own.begin(), own.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    });
    CsrMatrix<T> out;
    out.rows = rows;
    out.cols = cols;
    out.row_ptr.resize(static_cast<std::size_t>(rows) + 1);
    out.row_ptr[0] = 0;
    for (std::size_t row = 0; row < found.size(); ++row) {
        out.row_ptr[row + 1] = out.row_ptr[row] + static_cast<std::int64_t>(found[row].size());
    }
    HostVector<std::int32_t> columns(static_cast<std::size_t>(out.row_ptr.back()));
    out.values.resize(columns.size());
    for_each_row(rows, [&](std::int64_t row) {
        auto to = static_cast<std::size_t>(out.row_ptr[static_cast<std::size_t>(row)]);
        for (const auto& [column, value] : found[static_cast<std::size_t>(row)]) {
            columns[to] = column;
            out.values[to++] = static_cast<T>(value);
        }
    });
    out.col_idx = std::move(columns);
    return out;
}

}  // namespace rmsp::matrix
