#include <rmsp/renumber.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <core/value_types.hpp>
#include <rmsp/error.hpp>

#include "core/first_error.hpp"
#include "core/parallel.hpp"

namespace rmsp {
namespace {

template <class T>
void require_square(const CsrView<T>& a)
{
    validate(a);
    if (a.rows != a.cols) {
        throw Error(ErrorCode::usage,
                    fmt::format("only a square matrix can be numbered anew; this one is {} x {}", a.rows, a.cols));
    }
}

/// Sums of these over the columns of rows are equal for twins, and hardly ever else.
std::uint64_t column_mark(std::uint64_t column)
{
    std::uint64_t mark = column * 0x9e3779b97f4a7c15u;
    mark = (mark ^ mark >> 32) * 0xd6e8feb86659fd93u;
    return mark ^ mark >> 32;
}

template <class P, class C>
class Search {
public:
    Search(std::int64_t rows, const P* row_ptr, const C* col_idx)
        : rows_(rows), row_ptr_(row_ptr), col_idx_(col_idx), seen_(static_cast<std::size_t>(rows)), marks_(seen_.size())
    {
        order_.reserve(seen_.size());
#pragma omp parallel for schedule(static) if (entries(rows) > core::least_parallel)
        for (std::int64_t row = 0; row < rows; ++row) {
            std::uint64_t mark = 0;
            for (P i = row_ptr[row]; i < row_ptr[row + 1]; ++i) {
                mark += column_mark(static_cast<std::uint64_t>(col_idx[i]));
            }
            marks_[static_cast<std::size_t>(row)] = mark;
        }
    }

    HostVector<std::int64_t> order()
    {
        std::int64_t start = 0;
        for (std::int64_t row = 0; row < rows_; ++row) {
            start = length(row) > length(start) ? row : start;
        }
        if (rows_ > 0) {
            // From the shortest row of the last level that is reached from the longest one.
            const std::size_t last = visit(start);
            start = *std::min_element(order_.begin() + static_cast<std::ptrdiff_t>(last), order_.end(),
                                      [&](std::int64_t a, std::int64_t b) { return length(a) < length(b); });
            order_.clear();
            std::fill(seen_.begin(), seen_.end(), char{0});
            visit(start);
        }
        for (std::int64_t row = 0; row < rows_; ++row) {
            if (seen_[static_cast<std::size_t>(row)] == 0) {
                visit(row);
            }
        }
        return std::move(order_);
    }

private:
    std::int64_t entries(std::int64_t row) const { return static_cast<std::int64_t>(row_ptr_[row]); }
    std::int64_t length(std::int64_t row) const { return entries(row + 1) - entries(row); }

    /// Appends what is reached from a row, and returns where the last level begins.
    std::size_t visit(std::int64_t start)
    {
        std::size_t level = order_.size();
        std::size_t next = level;
        seen_[static_cast<std::size_t>(start)] = 1;
        order_.push_back(start);
        std::size_t end = order_.size();
        for (std::size_t at = level; at < order_.size(); ++at) {
            if (at == end) {
                level = end;
                end = order_.size();
            }
            const std::int64_t row = order_[at];
            next = order_.size();
            for (P i = row_ptr_[row]; i < row_ptr_[row + 1]; ++i) {
                const auto column = static_cast<std::int64_t>(col_idx_[i]);
                if (seen_[static_cast<std::size_t>(column)] == 0) {
                    seen_[static_cast<std::size_t>(column)] = 1;
                    order_.push_back(column);
                }
            }
            std::sort(order_.begin() + static_cast<std::ptrdiff_t>(next), order_.end(),
                      [&](std::int64_t a, std::int64_t b) { return weight(a) < weight(b); });
        }
        return level;
    }

    struct Weight {
        std::int64_t length;
        std::uint64_t mark;
        std::int64_t row;
        auto operator<=>(const Weight&) const = default;
    };
    Weight weight(std::int64_t row) const { return {length(row), marks_[static_cast<std::size_t>(row)], row}; }

    std::int64_t rows_;
    const P* row_ptr_;
    const C* col_idx_;
    std::vector<char> seen_;
    std::vector<std::uint64_t> marks_;
    HostVector<std::int64_t> order_;
};

}  // namespace

template <class T>
HostVector<std::int64_t> mesh_order(const CsrView<T>& a)
{
    require_square(a);
    return a.row_ptr.visit([&](const auto* row_ptr) {
        return a.col_idx.visit([&](const auto* col_idx) { return Search(a.rows, row_ptr, col_idx).order(); });
    });
}

template <class T>
CsrMatrix<T> renumbered(const CsrView<T>& a, std::span<const std::int64_t> row_at)
{
    require_square(a);
    const auto rows = static_cast<std::size_t>(a.rows);
    HostVector<std::int64_t> place(rows, -1);
    for (std::size_t i = 0; i < row_at.size(); ++i) {
        if (row_at[i] < 0 || row_at[i] >= a.rows || place[static_cast<std::size_t>(row_at[i])] >= 0) {
            throw Error(ErrorCode::usage,
                        fmt::format("a numbering of {} rows names row {} at place {}, which is none or "
                                    "has a place already",
                                    a.rows, row_at[i], i));
        }
        place[static_cast<std::size_t>(row_at[i])] = static_cast<std::int64_t>(i);
    }
    if (row_at.size() != rows) {
        throw Error(ErrorCode::usage, fmt::format("a numbering of {} rows has {} places", a.rows, row_at.size()));
    }
    CsrMatrix<T> out;
    out.rows = a.rows;
    out.cols = a.cols;
    out.row_ptr.resize(rows + 1);
    out.row_ptr[0] = 0;
    for (std::size_t i = 0; i < rows; ++i) {
        out.row_ptr[i + 1] = out.row_ptr[i] + (a.row_ptr[row_at[i] + 1] - a.row_ptr[row_at[i]]);
    }
    out.values.resize(static_cast<std::size_t>(a.nnz));
    const auto fill = [&](const auto* row_ptr, const auto* col_idx, auto* columns) {
        using Column = std::remove_pointer_t<decltype(columns)>;
        core::FirstError error;
#pragma omp parallel if (a.nnz > core::least_parallel)
        {
            std::vector<std::pair<Column, std::int64_t>> entries;  // new column, old place
#pragma omp for schedule(dynamic, 4096)
            for (std::int64_t i = 0; i < a.rows; ++i) {
                const std::int64_t row = row_at[static_cast<std::size_t>(i)];
                entries.clear();
                error.guard([&] {
                    const auto end = static_cast<std::int64_t>(row_ptr[row + 1]);
                    for (auto k = static_cast<std::int64_t>(row_ptr[row]); k < end; ++k) {
                        entries.emplace_back(static_cast<Column>(place[static_cast<std::size_t>(col_idx[k])]), k);
                    }
                });
                std::sort(entries.begin(), entries.end());
                auto to = static_cast<std::size_t>(out.row_ptr[static_cast<std::size_t>(i)]);
                for (const auto& [column, from] : entries) {
                    columns[to] = column;
                    out.values[to++] = a.values[from];
                }
            }
        }
        error.rethrow();
    };
    a.row_ptr.visit([&](const auto* row_ptr) {
        a.col_idx.visit([&](const auto* col_idx) {
            using Column = std::remove_cvref_t<decltype(*col_idx)>;
            HostVector<Column> columns(static_cast<std::size_t>(a.nnz));
            fill(row_ptr, col_idx, columns.data());
            out.col_idx = IndexArray(std::move(columns));
        });
    });
    return out;
}

template <class T>
void renumber(std::span<const std::int64_t> row_at, const T* from, T* to)
{
    const auto n = static_cast<std::int64_t>(row_at.size());
#pragma omp parallel for schedule(static) if (n > core::least_parallel)
    for (std::int64_t i = 0; i < n; ++i) {
        to[i] = from[row_at[static_cast<std::size_t>(i)]];
    }
}

template <class T>
void restore(std::span<const std::int64_t> row_at, const T* from, T* to)
{
    const auto n = static_cast<std::int64_t>(row_at.size());
#pragma omp parallel for schedule(static) if (n > core::least_parallel)
    for (std::int64_t i = 0; i < n; ++i) {
        to[row_at[static_cast<std::size_t>(i)]] = from[i];
    }
}

#define RMSP_INSTANTIATE(T)                                                             \
    template HostVector<std::int64_t> mesh_order(const CsrView<T>&);                    \
    template CsrMatrix<T> renumbered(const CsrView<T>&, std::span<const std::int64_t>); \
    template void renumber(std::span<const std::int64_t>, const T*, T*);                \
    template void restore(std::span<const std::int64_t>, const T*, T*);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp
