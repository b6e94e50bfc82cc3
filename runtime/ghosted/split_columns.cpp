#include "runtime/ghosted/split_columns.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <type_traits>

#include <rmsp/value_types.hpp>

namespace rmsp::ghosted {
namespace {

/// The entries that are not in a list of them, which rises, or those that are, with columns numbered anew.
/// \param rows  the rows that the result has, rising: no other has such entries; empty: all
template <class T, class F>
CsrMatrix<T> some_entries(const CsrView<T>& a, const std::vector<std::int64_t>& rows,
                          const std::vector<std::int64_t>& list, bool listed, std::int64_t cols, const F& number)
{
    const auto nnz = listed ? list.size() : static_cast<std::size_t>(a.nnz) - list.size();
    const auto count = rows.empty() ? static_cast<std::size_t>(a.rows) : rows.size();
    CsrMatrix<T> out{static_cast<std::int64_t>(count), cols, HostVector<std::int64_t>(count + 1),
                     IndexArray(index_type_for(cols), nnz), HostVector<T>(nnz)};
    a.col_idx.visit([&](const auto* columns) {
        out.col_idx.visit([&](auto& to) {
            using Index = typename std::decay_t<decltype(to)>::value_type;
            std::size_t next = 0;
            std::size_t at = 0;
            for (std::size_t i = 0; i < count; ++i) {
                const std::int64_t row = rows.empty() ? static_cast<std::int64_t>(i) : rows[i];
                out.row_ptr[i] = static_cast<std::int64_t>(at);
                for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
                    const bool is_listed = next < list.size() && list[next] == k;
                    next += is_listed ? 1 : 0;
                    if (is_listed == listed) {
                        out.values[at] = a.values[k];
                        to[at++] = static_cast<Index>(number(columns[k]));
                    }
                }
            }
            out.row_ptr.back() = static_cast<std::int64_t>(at);
        });
    });
    return out;
}

/// Whether a product of these rows alone is faster than one that passes over all rows. For each of them it reads and
/// writes y twice more, with its number; else each of the others is read and written, with its row pointer.
bool pays(std::size_t some, std::int64_t all)
{
    return 3 * static_cast<std::int64_t>(some) < all && all <= std::numeric_limits<std::int32_t>::max();
}

}  // namespace

template <class T>
Split<T> split_columns(const CsrView<T>& a, std::int64_t own_cols, bool whole_rows)
{
    const std::int64_t ghosts = a.cols - own_cols;
    Split<T> split;
    a.col_idx.visit([&](const auto* columns) {
        for (std::int64_t row = 0; row < a.rows; ++row) {
            const std::int64_t begin = a.row_ptr[row];
            const std::int64_t end = a.row_ptr[row + 1];
            const bool has_ghosts =
                std::any_of(columns + begin, columns + end, [&](auto column) { return column >= own_cols; });
            if (!has_ghosts) {
                continue;
            }
            split.rest_rows.push_back(row);
            for (std::int64_t i = begin; i < end; ++i) {
                if (columns[i] >= own_cols || whole_rows) {
                    split.in_rest.push_back(i);
                }
                if (columns[i] >= own_cols && whole_rows) {
                    split.outside_own.push_back(i);
                }
                if (columns[i] < own_cols && whole_rows) {
                    split.copied.push_back(columns[i]);
                }
            }
        }
    });
    if (!pays(split.rest_rows.size(), a.rows)) {
        split.rest_rows.clear();
    }
    std::sort(split.copied.begin(), split.copied.end());
    split.copied.erase(std::unique(split.copied.begin(), split.copied.end()), split.copied.end());
    const auto same = [](std::int64_t column) { return column; };
    split.own = some_entries(a, {}, whole_rows ? split.outside_own : split.in_rest, false, own_cols, same);
    split.rest = some_entries(
        a, split.rest_rows, split.in_rest, true, ghosts + static_cast<std::int64_t>(split.copied.size()),
        [&](std::int64_t column) {
            return column >= own_cols ? column - own_cols
                                      : ghosts + (std::lower_bound(split.copied.begin(), split.copied.end(), column) -
                                                  split.copied.begin());
        });
    if (whole_rows) {
        split.interior = some_entries(a, {}, split.in_rest, false, own_cols, same);
    }
    return split;
}

#define RMSP_INSTANTIATE(T) template Split<T> split_columns(const CsrView<T>&, std::int64_t, bool);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::ghosted
