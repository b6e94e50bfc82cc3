#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "matrix/coarsening.hpp"
#include "runtime/multigrid/linked_rows.hpp"

/// What of other processes' rows coarsening sees.
namespace rmsp::multigrid {

/// Numbers with all others of their nodes.
inline std::vector<std::int64_t> whole_nodes(const std::vector<std::int64_t>& numbers, std::int64_t unknowns)
{
    if (unknowns == 1) {
        return numbers;
    }
    std::vector<std::int64_t> all;
    for (const std::int64_t number : numbers) {
        const std::int64_t first = number / unknowns * unknowns;
        for (std::int64_t i = first; i < first + unknowns && (all.empty() || all.back() < first + unknowns - 1); ++i) {
            all.push_back(i);
        }
    }
    return all;
}

/// Own rows among those around them, in the order of the whole matrix, so that what is found of them depends as little
/// as can be on where processes are cut: rows one step away are here too, of those two steps away the numbers.
template <class T>
class Around {
public:
    Around(const Links& links, const std::vector<std::int64_t>& first_rows, const WholeColumns<T>& rows, int unknowns)
        : links_(links)
    {
        const std::int64_t first = first_rows[links.rank()];
        const std::int64_t last = first + rows.rows();
        near_ = ask(links, first_rows, whole_nodes(others(rows, first, last), unknowns));
        const WholeColumns<T> near_rows = rows_of(links, near_, rows);
        std::vector<std::int64_t> all;
        const std::vector<std::int64_t> far = whole_nodes(others(near_rows, first, last), unknowns);
        std::set_union(near_.numbers.begin(), near_.numbers.end(), far.begin(), far.end(), std::back_inserter(all));
        places_.emplace(links, first, rows.rows(), ask(links, first_rows, std::move(all)));

        const auto size = static_cast<std::int64_t>(places_->size());
        a.rows = a.cols = size;
        a.row_ptr.push_back(0);
        const auto entries = rows.columns.size() + near_rows.columns.size();
        HostVector<std::int32_t> columns;
        columns.reserve(entries);
        a.values.reserve(entries);
        std::size_t next = 0;
        for (std::int64_t row = 0; row < size; ++row) {
            const bool is_own = places_->is_own(row);
            const bool is_near = !is_own && next < near_.numbers.size() &&
                                 near_.numbers[next] == places_->numbers()[static_cast<std::size_t>(row)];
            const WholeColumns<T>& from = is_own ? rows : near_rows;
            const std::int64_t at = is_own ? row - places_->first() : static_cast<std::int64_t>(next);
            if (is_own || is_near) {
                for (std::int64_t k = from.begin(at); k < from.end(at); ++k) {
                    columns.push_back(places_->here(from.columns[static_cast<std::size_t>(k)]));
                    a.values.push_back(from.values[static_cast<std::size_t>(k)]);
                }
            }
            next += is_near ? 1 : 0;
            a.row_ptr.push_back(static_cast<std::int64_t>(a.values.size()));
        }
        a.col_idx = std::move(columns);
    }

    /// Other values of the own rows, and of those one step away. Collective.
    void renew(const WholeColumns<T>& rows)
    {
        const std::vector<T> near_values = values_of_rows(links_, near_, rows);
        // Rows one step away that come before the own ones stand before them.
        const auto own_begin = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(places_->first())]);
        a.values.resize(static_cast<std::size_t>(a.row_ptr.back()));
        std::copy_n(near_values.begin(), own_begin, a.values.begin());
        std::copy(rows.values.begin(), rows.values.end(), a.values.begin() + static_cast<std::ptrdiff_t>(own_begin));
        std::copy(near_values.begin() + static_cast<std::ptrdiff_t>(own_begin), near_values.end(),
                  a.values.begin() + static_cast<std::ptrdiff_t>(own_begin + rows.values.size()));
    }
    /// Gives up the values, until renew().
    void forget_values() { HostVector<T>().swap(a.values); }
    std::int64_t host_bytes() const
    {
        return static_cast<std::int64_t>(a.row_ptr.size() * sizeof(std::int64_t) +
                                         a.col_idx.size() * sizeof(std::int32_t) +
                                         places_->size() * sizeof(std::int64_t));
    }

    /// Which rows are here.
    const AmongOthers& places() const { return *places_; }

    CsrMatrix<T> a;

private:
    const Links links_;
    Known near_;  ///< rows one step away
    std::optional<AmongOthers> places_;
};

/// Numbers of coarse points or aggregates of the rows around, in the whole matrix and here.
struct Numbered {
    std::vector<std::int64_t> whole;  ///< of each that is here, rising
    matrix::Coarsening here;
};
inline Numbered numbered_here(const std::vector<std::int64_t>& number)
{
    Numbered out;
    std::copy_if(number.begin(), number.end(), std::back_inserter(out.whole), [](std::int64_t n) { return n >= 0; });
    std::sort(out.whole.begin(), out.whole.end());
    out.whole.erase(std::unique(out.whole.begin(), out.whole.end()), out.whole.end());
    out.here.count = static_cast<std::int64_t>(out.whole.size());
    for (const std::int64_t n : number) {
        const auto at = std::lower_bound(out.whole.begin(), out.whole.end(), n) - out.whole.begin();
        out.here.number.push_back(n < 0 ? -1 : static_cast<std::int32_t>(at));
    }
    return out;
}

/// Own rows of a P that was made of all rows here; `count` columns for each number of `whole`.
template <class T>
WholeColumns<T> own_rows(const CsrMatrix<T>& p, const AmongOthers& places, const std::vector<std::int64_t>& whole,
                         std::int64_t count)
{
    WholeColumns<T> out;
    for (std::int64_t row = places.first(); row < places.first() + places.own(); ++row) {
        const auto begin = p.row_ptr[static_cast<std::size_t>(row)];
        const auto end = p.row_ptr[static_cast<std::size_t>(row) + 1];
        std::vector<std::pair<std::int64_t, T>> entries;
        for (std::int64_t k = begin; k < end; ++k) {
            const std::int64_t column = p.col_idx[k];
            entries.emplace_back(whole[static_cast<std::size_t>(column / count)] * count + column % count,
                                 p.values[static_cast<std::size_t>(k)]);
        }
        std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (const auto& [column, value] : entries) {
            out.add(column, value);
        }
        out.close();
    }
    return out;
}

}  // namespace rmsp::multigrid
