#include "runtime/multigrid/linked_rows.hpp"

#include <numeric>

#include "core/value_types.hpp"

namespace rmsp::multigrid {

Known ask(const Links& links, const std::vector<std::int64_t>& first_rows, std::vector<std::int64_t> numbers)
{
    Known known;
    known.numbers = std::move(numbers);
    std::vector<std::vector<std::int64_t>> asked(links.size());
    for (auto at = known.numbers.begin(); at != known.numbers.end();) {
        const auto owner = std::upper_bound(first_rows.begin(), first_rows.end(), *at) - 1;
        const auto end = std::lower_bound(at, known.numbers.end(), *(owner + 1));
        known.receives.push_back({static_cast<int>(owner - first_rows.begin()), at - known.numbers.begin(), end - at});
        asked[static_cast<std::size_t>(owner - first_rows.begin())].assign(at, end);
        at = end;
    }
    const std::int64_t first = first_rows[links.rank()];
    const std::vector<std::vector<std::int64_t>> wanted = links.bring(asked);
    for (std::size_t p = 0; p < wanted.size(); ++p) {
        if (!wanted[p].empty()) {
            known.sends.push_back({static_cast<int>(p), static_cast<std::int64_t>(known.sent.size()),
                                   static_cast<std::int64_t>(wanted[p].size())});
            for (const std::int64_t number : wanted[p]) {
                known.sent.push_back(number - first);
            }
        }
    }
    return known;
}

template <class T>
WholeColumns<T> rows_of(const Links& links, const Known& known, const WholeColumns<T>& own)
{
    std::vector<std::vector<std::int64_t>> lengths(links.size());
    std::vector<std::vector<std::int64_t>> columns(links.size());
    std::vector<std::vector<T>> values(links.size());
    for (const GhostNeighbour& part : known.sends) {
        const auto p = static_cast<std::size_t>(part.process);
        for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
            const std::int64_t row = known.sent[static_cast<std::size_t>(i)];
            const std::int64_t begin = own.begin(row);
            const std::int64_t end = own.end(row);
            lengths[p].push_back(end - begin);
            columns[p].insert(columns[p].end(), own.columns.begin() + begin, own.columns.begin() + end);
            values[p].insert(values[p].end(), own.values.begin() + begin, own.values.begin() + end);
        }
    }
    lengths = links.bring(lengths);
    columns = links.bring(columns);
    values = links.bring(values);
    WholeColumns<T> rows;
    for (const GhostNeighbour& part : known.receives) {
        const auto p = static_cast<std::size_t>(part.process);
        for (const std::int64_t length : lengths[p]) {
            rows.row_ptr.push_back(rows.row_ptr.back() + length);
        }
        rows.columns.insert(rows.columns.end(), columns[p].begin(), columns[p].end());
        rows.values.insert(rows.values.end(), values[p].begin(), values[p].end());
    }
    return rows;
}

template <class T>
std::vector<T> values_of_rows(const Links& links, const Known& known, const WholeColumns<T>& own)
{
    std::vector<std::vector<T>> to(links.size());
    for (const GhostNeighbour& part : known.sends) {
        std::vector<T>& out = to[static_cast<std::size_t>(part.process)];
        for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
            const std::int64_t row = known.sent[static_cast<std::size_t>(i)];
            out.insert(out.end(), own.values.begin() + own.begin(row), own.values.begin() + own.end(row));
        }
    }
    to = links.bring(to);
    std::vector<T> all;
    for (const GhostNeighbour& part : known.receives) {
        const std::vector<T>& of = to[static_cast<std::size_t>(part.process)];
        all.insert(all.end(), of.begin(), of.end());
    }
    return all;
}

template <class T>
std::vector<std::int64_t> others(const WholeColumns<T>& rows, std::int64_t first, std::int64_t end)
{
    std::vector<std::int64_t> out;
    std::copy_if(rows.columns.begin(), rows.columns.end(), std::back_inserter(out),
                 [&](std::int64_t column) { return column < first || column >= end; });
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

template <class T>
CsrMatrix<T> numbered(const WholeColumns<T>& rows, std::int64_t first, std::int64_t own,
                      const std::vector<std::int64_t>& known)
{
    CsrMatrix<T> out;
    out.rows = rows.rows();
    out.cols = own + static_cast<std::int64_t>(known.size());
    out.row_ptr.assign(rows.row_ptr.begin(), rows.row_ptr.end());
    out.values.assign(rows.values.begin(), rows.values.end());
    out.col_idx = IndexArray(index_type_for(out.cols), rows.columns.size());
    out.col_idx.visit([&](auto& to) {
        using Index = typename std::decay_t<decltype(to)>::value_type;
        std::transform(rows.columns.begin(), rows.columns.end(), to.begin(), [&](std::int64_t column) {
            return static_cast<Index>(column >= first && column < first + own
                                          ? column - first
                                          : own +
                                                (std::lower_bound(known.begin(), known.end(), column) - known.begin()));
        });
    });
    return out;
}

template <class T>
AddedRows<T>::AddedRows(const Links& links, const std::vector<std::int64_t>& first_rows,
                        const std::vector<std::int64_t>& numbers, const WholeColumns<T>& rows)
    : links_(links)
{
    // A row is its number, its length, its columns.
    std::vector<std::vector<std::int64_t>> structure(links.size());
    std::vector<std::size_t> counts(links.size());
    for (std::int64_t row = 0; row < rows.rows(); ++row) {
        const std::int64_t number = numbers[static_cast<std::size_t>(row)];
        const auto p = static_cast<std::size_t>(std::upper_bound(first_rows.begin(), first_rows.end(), number) -
                                                first_rows.begin() - 1);
        const std::int64_t begin = rows.begin(row);
        const std::int64_t end = rows.end(row);
        structure[p].insert(structure[p].end(), {number, end - begin});
        structure[p].insert(structure[p].end(), rows.columns.begin() + begin, rows.columns.begin() + end);
        counts[p] += static_cast<std::size_t>(end - begin);
    }
    begins_.push_back(0);
    for (const std::size_t count : counts) {
        begins_.push_back(begins_.back() + count);
    }
    structure = links.bring(structure);

    /// A column that a row has of one process, and which of all that come that is.
    struct Piece {
        std::int64_t column;
        std::size_t place;
    };
    const std::int64_t first = first_rows[links.rank()];
    std::vector<std::vector<Piece>> pieces(static_cast<std::size_t>(first_rows[links.rank() + 1] - first));
    std::size_t place = 0;
    for (const std::vector<std::int64_t>& came : structure) {
        for (std::size_t at = 0; at < came.size();) {
            const auto count = static_cast<std::size_t>(came[at + 1]);
            for (std::size_t i = 0; i < count; ++i) {
                pieces[static_cast<std::size_t>(came[at] - first)].push_back({came[at + 2 + i], place++});
            }
            at += 2 + count;
        }
    }
    places_.resize(place);
    for (std::vector<Piece>& row : pieces) {
        std::sort(row.begin(), row.end(), [](const Piece& a, const Piece& b) { return a.column < b.column; });
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (i == 0 || row[i].column != row[i - 1].column) {
                sums_.add(row[i].column, T{0});
            }
            places_[row[i].place] = sums_.columns.size() - 1;
        }
        sums_.close();
    }
    add(rows.values);
}

template <class T>
void AddedRows<T>::add(const std::vector<T>& values)
{
    std::vector<std::vector<T>> to;
    for (std::size_t p = 0; p + 1 < begins_.size(); ++p) {
        to.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(begins_[p]),
                        values.begin() + static_cast<std::ptrdiff_t>(begins_[p + 1]));
    }
    std::fill(sums_.values.begin(), sums_.values.end(), T{0});
    auto place = places_.begin();
    for (const std::vector<T>& came : links_.bring(to)) {
        for (const T value : came) {
            sums_.values[*place++] += value;
        }
    }
}

#define RMSP_INSTANTIATE(T)                                                                        \
    template WholeColumns<T> rows_of(const Links&, const Known&, const WholeColumns<T>&);          \
    template std::vector<T> values_of_rows(const Links&, const Known&, const WholeColumns<T>&);    \
    template std::vector<std::int64_t> others(const WholeColumns<T>&, std::int64_t, std::int64_t); \
    template CsrMatrix<T> numbered(const WholeColumns<T>&, std::int64_t, std::int64_t,             \
                                   const std::vector<std::int64_t>&);                              \
    template class AddedRows<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::multigrid
