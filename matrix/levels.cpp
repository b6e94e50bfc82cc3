#include "matrix/levels.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/subscript.hpp"
#include "core/value_types.hpp"
#include "matrix/for_each_row.hpp"

namespace rmsp::matrix {
namespace {

using core::at;

/// The entries of a triangle beside the diagonal, by rows, as places among the factors' entries.
struct TriangleEntries {
    std::vector<std::int64_t> begin;  ///< of each row
    std::vector<std::int64_t> end;
    /// transposed_lower: what begin and end count, with the column of each; empty: places among the factors' entries
    std::vector<std::int64_t> place;
    std::vector<std::int32_t> column;
};

template <class T>
TriangleEntries transposed_entries(const SquareBlock<T>& factors)
{
    TriangleEntries out;
    out.begin.assign(at(factors.rows) + 1, 0);
    for (std::int64_t row = 0; row < factors.rows; ++row) {
        for (std::int64_t k = factors.row_ptr[at(row)]; k < factors.diagonal[at(row)]; ++k) {
            ++out.begin[at(factors.col_idx[at(k)]) + 1];
        }
    }
    for (std::size_t row = 0; row < at(factors.rows); ++row) {
        out.begin[row + 1] += out.begin[row];
    }
    out.place.resize(at(out.begin.back()));
    out.column.resize(at(out.begin.back()));
    out.begin.pop_back();
    out.end = out.begin;
    for (std::int64_t row = 0; row < factors.rows; ++row) {
        for (std::int64_t k = factors.row_ptr[at(row)]; k < factors.diagonal[at(row)]; ++k) {
            const std::int64_t to = out.end[at(factors.col_idx[at(k)])]++;
            out.place[at(to)] = k;
            out.column[at(to)] = static_cast<std::int32_t>(row);
        }
    }
    return out;
}

template <class T>
TriangleEntries entries_of(const SquareBlock<T>& factors, Triangle triangle)
{
    if (triangle == Triangle::transposed_lower) {
        return transposed_entries(factors);
    }
    const bool upper = triangle == Triangle::upper;
    TriangleEntries out;
    out.begin.resize(at(factors.rows));
    out.end.resize(at(factors.rows));
    for (std::size_t row = 0; row < at(factors.rows); ++row) {
        out.begin[row] = upper ? factors.diagonal[row] + 1 : factors.row_ptr[row];
        out.end[row] = upper ? factors.row_ptr[row + 1] : factors.diagonal[row];
    }
    return out;
}

bool is_upper(Triangle triangle) { return triangle == Triangle::upper || triangle == Triangle::transposed_lower; }

/// One more than the highest level of the columns of the row, which are done before it.
template <class Column>
std::int32_t level_of(const HostVector<std::int32_t>& levels, std::int64_t begin, std::int64_t end,
                      const Column& column)
{
    std::int32_t level = 0;
    for (std::int64_t k = begin; k < end; ++k) {
        level = std::max(level, levels[at(column(k))] + 1);
    }
    return level;
}

/// The values of each place, from the factors'.
template <class T>
void fill_values(const SquareBlock<T>& factors, const TriangleEntries& entries, bool unit, LevelTriangle<T>& out)
{
    for_each_row(out.size(), [&](std::int64_t place) {
        const std::int64_t row = out.rows[at(place)];
        std::int64_t to = out.row_ptr[at(place)];
        for (std::int64_t k = entries.begin[at(row)]; k < entries.end[at(row)]; ++k) {
            out.values[at(to++)] = factors.values[at(entries.place.empty() ? k : entries.place[at(k)])];
        }
        if (!unit) {
            out.inverse_diagonal[at(place)] = T{1} / factors.values[at(factors.diagonal[at(row)])];
        }
    });
}

}  // namespace

template <class T>
HostVector<std::int32_t> lower_levels(const SquareBlock<T>& block)
{
    HostVector<std::int32_t> levels(at(block.rows));
    for (std::int64_t row = 0; row < block.rows; ++row) {
        levels[at(row)] = level_of(levels, block.row_ptr[at(row)], block.diagonal[at(row)],
                                   [&](std::int64_t k) { return block.col_idx[at(k)]; });
    }
    return levels;
}

template <class T>
LevelTriangle<T> level_triangle(const SquareBlock<T>& factors, Triangle triangle)
{
    const TriangleEntries entries = entries_of(factors, triangle);
    const auto column = [&](std::int64_t k) {
        return entries.place.empty() ? factors.col_idx[at(k)] : entries.column[at(k)];
    };
    HostVector<std::int32_t> level(at(factors.rows));
    std::int32_t level_count = 0;
    for (std::int64_t i = 0; i < factors.rows; ++i) {
        const std::int64_t row = is_upper(triangle) ? factors.rows - 1 - i : i;
        level[at(row)] = level_of(level, entries.begin[at(row)], entries.end[at(row)], column);
        level_count = std::max(level_count, level[at(row)] + 1);
    }

    LevelTriangle<T> out;
    out.levels.assign(at(level_count) + 1, 0);
    for (const std::int32_t l : level) {
        ++out.levels[at(l) + 1];
    }
    for (std::size_t l = 0; l < at(level_count); ++l) {
        out.levels[l + 1] += out.levels[l];
    }
    out.rows.resize(at(factors.rows));
    std::vector<std::int64_t> next(out.levels.begin(), out.levels.end() - 1);
    for (std::int64_t row = 0; row < factors.rows; ++row) {
        out.rows[at(next[at(level[at(row)])]++)] = static_cast<std::int32_t>(row);
    }
    out.row_ptr.resize(at(factors.rows) + 1);
    out.row_ptr.front() = 0;
    for (std::int64_t place = 0; place < factors.rows; ++place) {
        const std::int64_t row = out.rows[at(place)];
        out.row_ptr[at(place) + 1] = out.row_ptr[at(place)] + entries.end[at(row)] - entries.begin[at(row)];
    }
    out.col_idx.resize(at(out.row_ptr.back()));
    out.values.resize(at(out.row_ptr.back()));
    for_each_row(out.size(), [&](std::int64_t place) {
        const std::int64_t row = out.rows[at(place)];
        std::int64_t to = out.row_ptr[at(place)];
        for (std::int64_t k = entries.begin[at(row)]; k < entries.end[at(row)]; ++k) {
            out.col_idx[at(to++)] = column(k);
        }
    });
    const bool unit = triangle == Triangle::unit_lower;
    out.inverse_diagonal.resize(unit ? 0 : at(factors.rows));
    fill_values(factors, entries, unit, out);
    return out;
}

template <class T>
void renew(const SquareBlock<T>& factors, Triangle triangle, LevelTriangle<T>& out)
{
    fill_values(factors, entries_of(factors, triangle), triangle == Triangle::unit_lower, out);
}

template <class T>
void solve_reference(const LevelTriangle<T>& triangle, const T* b, T* x)
{
    for (std::int64_t place = 0; place < triangle.size(); ++place) {
        const std::int64_t row = triangle.rows[at(place)];
        T rest = b[row];
        for (std::int64_t k = triangle.row_ptr[at(place)]; k < triangle.row_ptr[at(place) + 1]; ++k) {
            rest -= triangle.values[at(k)] * x[triangle.col_idx[at(k)]];
        }
        x[row] = triangle.inverse_diagonal.empty() ? rest : rest * triangle.inverse_diagonal[at(place)];
    }
}

#define RMSP_INSTANTIATE(T)                                                    \
    template HostVector<std::int32_t> lower_levels(const SquareBlock<T>&);     \
    template LevelTriangle<T> level_triangle(const SquareBlock<T>&, Triangle); \
    template void renew(const SquareBlock<T>&, Triangle, LevelTriangle<T>&);   \
    template void solve_reference(const LevelTriangle<T>&, const T*, T*);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::matrix
