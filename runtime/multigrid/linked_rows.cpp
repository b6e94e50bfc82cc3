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
WholeColumns<T> added(const Links& links, const std::vector<std::int64_t>& first_rows,
                      const std::vector<std::int64_t>& numbers, const WholeColumns<T>& rows)
{
    // A row is its number, its length, its columns.
    std::vector<std::vector<std::int64_t>> structure(links.size());
    std::vector<std::vector<T>> values(links.size());
    for (std::int64_t row = 0; row < rows.rows(); ++row) {
        const std::int64_t number = numbers[static_cast<std::size_t>(row)];
        const auto p = static_cast<std::size_t>(std::upper_bound(first_rows.begin(), first_rows.end(), number) -
                                                first_rows.begin() - 1);
        const std::int64_t begin = rows.begin(row);
        const std::int64_t end = rows.end(row);
        structure[p].insert(structure[p].end(), {number, end - begin});
        structure[p].insert(structure[p].end(), rows.columns.begin() + begin, rows.columns.begin() + end);
        values[p].insert(values[p].end(), rows.values.begin() + begin, rows.values.begin() + end);
    }
    structure = links.bring(structure);
    values = links.bring(values);

    struct Piece {
        const std::int64_t* columns;
        const T* values;
        std::int64_t count;
    };
    const std::int64_t first = first_rows[links.rank()];
    std::vector<std::vector<Piece>> pieces(static_cast<std::size_t>(first_rows[links.rank() + 1] - first));
    for (std::size_t p = 0; p < structure.size(); ++p) {
        const T* next = values[p].data();
        for (std::size_t at = 0; at < structure[p].size();) {
            const std::int64_t count = structure[p][at + 1];
            pieces[static_cast<std::size_t>(structure[p][at] - first)].push_back(
                {structure[p].data() + at + 2, next, count});
            next += count;
            at += 2 + static_cast<std::size_t>(count);
        }
    }
    WholeColumns<T> out;
    std::vector<std::pair<std::int64_t, T>> sum;
    for (const std::vector<Piece>& row : pieces) {
        sum.clear();
        for (const Piece& piece : row) {
            for (std::int64_t i = 0; i < piece.count; ++i) {
                sum.emplace_back(piece.columns[i], piece.values[i]);
            }
        }
        // In the order of the processes, whatever the sort: the same bits each time.
        std::stable_sort(sum.begin(), sum.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (std::size_t i = 0; i < sum.size(); ++i) {
            if (i > 0 && sum[i].first == sum[i - 1].first) {
                out.values.back() += sum[i].second;
            } else {
                out.add(sum[i].first, sum[i].second);
            }
        }
        out.close();
    }
    return out;
}

#define RMSP_INSTANTIATE(T)                                                                                          \
    template WholeColumns<T> rows_of(const Links&, const Known&, const WholeColumns<T>&);                            \
    template std::vector<std::int64_t> others(const WholeColumns<T>&, std::int64_t, std::int64_t);                   \
    template CsrMatrix<T> numbered(const WholeColumns<T>&, std::int64_t, std::int64_t,                               \
                                   const std::vector<std::int64_t>&);                                                \
    template WholeColumns<T> added(const Links&, const std::vector<std::int64_t>&, const std::vector<std::int64_t>&, \
                                   const WholeColumns<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::multigrid
