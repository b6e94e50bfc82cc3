#include "runtime/multigrid/linked_transfer.hpp"

#include <algorithm>
#include <utility>

#include "core/value_types.hpp"
#include "matrix/coarsening.hpp"
#include "matrix/interpolation.hpp"
#include "matrix/strength.hpp"
#include "runtime/multigrid/options.hpp"

namespace rmsp::multigrid {
namespace {

/// Numbers with all others of their nodes.
std::vector<std::int64_t> whole_nodes(const std::vector<std::int64_t>& numbers, std::int64_t unknowns)
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
        : links_(links), number_(first_rows[links.rank()]), own_(rows.rows())
    {
        const std::int64_t last = number_ + own_;
        near_ = ask(links, first_rows, whole_nodes(others(rows, number_, last), unknowns));
        const WholeColumns<T> near_rows = rows_of(links, near_, rows);
        std::vector<std::int64_t> all;
        const std::vector<std::int64_t> far = whole_nodes(others(near_rows, number_, last), unknowns);
        std::set_union(near_.numbers.begin(), near_.numbers.end(), far.begin(), far.end(), std::back_inserter(all));
        known_ = ask(links, first_rows, std::move(all));
        const auto& others_here = known_.numbers;
        first_ = std::lower_bound(others_here.begin(), others_here.end(), number_) - others_here.begin();
        numbers_.assign(others_here.begin(), others_here.begin() + first_);
        for (std::int64_t i = 0; i < own_; ++i) {
            numbers_.push_back(number_ + i);
        }
        numbers_.insert(numbers_.end(), others_here.begin() + first_, others_here.end());

        const auto size = static_cast<std::int64_t>(numbers_.size());
        a.rows = a.cols = size;
        a.row_ptr.push_back(0);
        const auto entries = rows.columns.size() + near_rows.columns.size();
        HostVector<std::int32_t> columns;
        columns.reserve(entries);
        a.values.reserve(entries);
        std::size_t next = 0;
        for (std::int64_t row = 0; row < size; ++row) {
            const bool is_own = row >= first_ && row < first_ + own_;
            const bool is_near = !is_own && next < near_.numbers.size() &&
                                 near_.numbers[next] == numbers_[static_cast<std::size_t>(row)];
            const WholeColumns<T>& from = is_own ? rows : near_rows;
            const std::int64_t at = is_own ? row - first_ : static_cast<std::int64_t>(next);
            if (is_own || is_near) {
                for (std::int64_t k = from.begin(at); k < from.end(at); ++k) {
                    columns.push_back(here(from.columns[static_cast<std::size_t>(k)]));
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
        const auto own_begin = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(first_)]);
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
                                         numbers_.size() * sizeof(std::int64_t));
    }

    /// Where the rows of others are here, overwrites `width` entries of each by what those have. Collective.
    template <class X>
    void share(std::span<X> entries, std::size_t width = 1) const
    {
        const auto first = static_cast<std::size_t>(first_) * width;
        const auto own = static_cast<std::size_t>(own_) * width;
        const std::vector<X> came =
            values_of<X>(links_, known_, std::span<const X>(entries).subspan(first, own), width);
        std::copy_n(came.begin(), first, entries.begin());
        std::copy(came.begin() + static_cast<std::ptrdiff_t>(first), came.end(),
                  entries.begin() + static_cast<std::ptrdiff_t>(first + own));
    }
    std::size_t size() const { return numbers_.size(); }
    std::int64_t first() const { return first_; }
    std::int64_t own() const { return own_; }
    const std::vector<std::int64_t>& numbers() const { return numbers_; }

    CsrMatrix<T> a;

private:
    std::int32_t here(std::int64_t column) const
    {
        return static_cast<std::int32_t>(column >= number_ && column < number_ + own_
                                             ? first_ + column - number_
                                             : std::lower_bound(numbers_.begin(), numbers_.end(), column) -
                                                   numbers_.begin());
    }

    const Links links_;
    std::int64_t number_;  ///< of the first own row
    std::int64_t own_;
    std::int64_t first_ = 0;  ///< own row, here
    Known near_;              ///< rows one step away
    Known known_;
    std::vector<std::int64_t> numbers_;
};

/// Numbers of coarse points or aggregates of the rows around, in the whole matrix and here.
struct Numbered {
    std::vector<std::int64_t> whole;  ///< of each that is here, rising
    matrix::Coarsening here;
};
Numbered numbered_here(const std::vector<std::int64_t>& number)
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

/// Own rows of a P that was made of all rows here; `count` columns for each number.
template <class T>
WholeColumns<T> own_rows(const CsrMatrix<T>& p, std::int64_t first, std::int64_t own,
                         const std::vector<std::int64_t>& whole, std::int64_t count)
{
    WholeColumns<T> out;
    for (std::int64_t row = first; row < first + own; ++row) {
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

template <class T>
class LinkedClassical final : public LinkedTransfer<T> {
public:
    LinkedClassical(const Links& links, Around<T> around, std::int64_t rows, const Coarsener& how)
        : around_(std::move(around)),
          kind_(how.direct ? matrix::Interpolation::direct : matrix::Interpolation::extended),
          strong_(matrix::strong_entries(around_.a.view(), matrix::Strength::classical, how.threshold))
    {
        matrix::PartOfRows part;
        part.first = around_.first();
        part.end = around_.first() + around_.own();
        part.numbers = around_.numbers();
        part.share_counts = [&](std::span<std::int32_t> counts) { around_.share(counts); };
        part.share_states = [&](std::span<std::uint8_t> states) { around_.share(states); };
        part.any = [&](bool own) { return links.total(own ? 1.0 : 0.0) > 0; };
        const matrix::Coarsening own = matrix::pmis(matrix::strong_graph(around_.a.view(), strong_), part);
        this->first_rows = links.offsets(own.count);
        if (is_stalled(this->first_rows.back(), rows)) {
            return;
        }
        std::vector<std::int64_t> number(around_.size(), -1);
        for (std::int64_t row = part.first; row < part.end; ++row) {
            const std::int32_t found = own.number[static_cast<std::size_t>(row)];
            number[static_cast<std::size_t>(row)] = found < 0 ? -1 : this->first_rows[links.rank()] + found;
        }
        around_.share(std::span(number));
        coarse_ = numbered_here(number);
        p_here_ = matrix::interpolation(around_.a.view(), strong_, coarse_.here,
                                        {kind_, how.truncation, how.interpolation_entries});
        take_p();
    }
    void renew(const WholeColumns<T>& rows) override
    {
        around_.renew(rows);
        matrix::renew_interpolation(around_.a.view(), strong_, coarse_.here, kind_, p_here_);
        take_p();
    }
    std::int64_t host_bytes() const override
    {
        return around_.host_bytes() + static_cast<std::int64_t>(strong_.size() + p_here_.values.size() * sizeof(T) +
                                                                p_here_.col_idx.size() * sizeof(std::int32_t));
    }

private:
    void take_p()
    {
        this->p = own_rows(p_here_, around_.first(), around_.own(), coarse_.whole, 1);
        around_.forget_values();
    }

    Around<T> around_;
    matrix::Interpolation kind_;
    HostVector<std::uint8_t> strong_;
    Numbered coarse_;
    CsrMatrix<T> p_here_;  ///< of all rows here
};

/// The edges between nodes of the own rows.
matrix::Graph own_graph(const matrix::Graph& graph, std::int64_t first, std::int64_t own)
{
    matrix::Graph out;
    out.row_ptr.push_back(0);
    for (std::int64_t node = first; node < first + own; ++node) {
        for (const std::int32_t other : graph.neighbours(node)) {
            if (other >= first && other < first + own) {
                out.col_idx.push_back(static_cast<std::int32_t>(other - first));
            }
        }
        out.row_ptr.push_back(static_cast<std::int64_t>(out.col_idx.size()));
    }
    return out;
}

template <class T>
class LinkedAggregation final : public LinkedTransfer<T> {
public:
    LinkedAggregation(const Links& links, Around<T> around, std::int64_t rows, const matrix::NearNullspace& given,
                      const Coarsener& how)
        : links_(links), around_(std::move(around)), smooth_(how.smooth)
    {
        const auto unknowns = static_cast<std::int64_t>(how.unknowns);
        const std::int64_t first_node = around_.first() / unknowns;
        const std::int64_t own_nodes = around_.own() / unknowns;
        matrix::Graph graph;
        if (how.unknowns == 1) {
            strong_ = matrix::strong_entries(around_.a.view(), matrix::Strength::symmetric, how.threshold);
            graph = matrix::strong_graph(around_.a.view(), strong_);
        } else {
            const CsrMatrix<double> norms = matrix::block_norms(around_.a.view(), how.unknowns);
            const auto of_nodes = matrix::strong_entries(norms.view(), matrix::Strength::symmetric, how.threshold);
            graph = matrix::strong_graph(norms.view(), of_nodes);
            strong_ = matrix::of_blocks(around_.a.view(), how.unknowns, norms.view(), of_nodes);
        }
        matrix::Coarsening nodes = matrix::aggregates(matrix::symmetrised(own_graph(graph, first_node, own_nodes)));
        const matrix::Tentative own = matrix::tentative(
            std::move(nodes), how.unknowns,
            given.values.empty() && around_.own() > 0 ? matrix::constants(around_.own(), given.count) : given);
        this->first_rows = links.offsets(own.columns());
        this->near = own.coarse;
        if (is_stalled(this->first_rows.back(), rows)) {
            return;
        }

        // The same of the rows around: the aggregate, what T has, and for one vector its length on the aggregate.
        const auto count = static_cast<std::size_t>(own.count);
        std::vector<std::int64_t> number(around_.size(), -1);
        std::vector<double> values(around_.size() * count);
        std::vector<double> lengths(around_.size());
        for (std::int64_t i = 0; i < around_.own(); ++i) {
            const auto row = static_cast<std::size_t>(around_.first() + i);
            const std::int32_t aggregate = own.nodes.number[static_cast<std::size_t>(i / unknowns)];
            std::copy_n(own.values.begin() + i * own.count, count,
                        values.begin() + static_cast<std::ptrdiff_t>(row * count));
            if (aggregate >= 0) {
                number[row] = this->first_rows[links.rank()] / own.count + aggregate;
                lengths[row] = own.coarse.values[static_cast<std::size_t>(aggregate) * count * count];
            }
        }
        around_.share(std::span(number));
        around_.share(std::span(values), count);
        around_.share(std::span(lengths));
        std::vector<std::int64_t> number_of_node;
        for (std::size_t row = 0; row < number.size(); row += static_cast<std::size_t>(unknowns)) {
            number_of_node.push_back(number[row]);
        }
        Numbered here = numbered_here(number_of_node);
        t_.count = own.count;
        t_.unknowns = how.unknowns;
        t_.values.assign(values.begin(), values.end());
        t_.coarse.count = own.count;
        t_.coarse.values.assign(here.whole.size() * count * count, 0.0);
        for (std::size_t row = 0; row < number.size(); ++row) {
            const std::int32_t aggregate = here.here.number[row / static_cast<std::size_t>(unknowns)];
            if (aggregate >= 0) {
                t_.coarse.values[static_cast<std::size_t>(aggregate) * count * count] = lengths[row];
            }
        }
        t_.nodes = std::move(here.here);
        whole_ = std::move(here.whole);
        take_p();
    }
    void renew(const WholeColumns<T>& rows) override
    {
        around_.renew(rows);
        take_p();
    }
    std::int64_t host_bytes() const override
    {
        return around_.host_bytes() + static_cast<std::int64_t>(strong_.size() + t_.values.size() * sizeof(double) +
                                                                t_.nodes.number.size() * sizeof(std::int32_t));
    }

private:
    void take_p()
    {
        const auto most_of_all = [&](double found) {
            const std::vector<double> all = links_.of_all(found);
            return *std::max_element(all.begin(), all.end());
        };
        this->p = own_rows(matrix::smoothed_prolongator(around_.a.view(), strong_, t_, smooth_, most_of_all),
                           around_.first(), around_.own(), whole_, t_.count);
        around_.forget_values();
    }

    const Links links_;
    Around<T> around_;
    bool smooth_;
    HostVector<std::uint8_t> strong_;
    matrix::Tentative t_;  ///< of all rows here
    std::vector<std::int64_t> whole_;
};

}  // namespace

template <class T>
std::unique_ptr<LinkedTransfer<T>> linked_transfer(const Links& links, const std::vector<std::int64_t>& first_rows,
                                                   const WholeColumns<T>& rows, const matrix::NearNullspace& near,
                                                   const Coarsener& how)
{
    Around<T> around(links, first_rows, rows, how.unknowns);
    if (how.method == Method::classical) {
        return std::make_unique<LinkedClassical<T>>(links, std::move(around), first_rows.back(), how);
    }
    return std::make_unique<LinkedAggregation<T>>(links, std::move(around), first_rows.back(), near, how);
}

#define RMSP_INSTANTIATE(T)                                                                                           \
    template std::unique_ptr<LinkedTransfer<T>> linked_transfer(const Links&, const std::vector<std::int64_t>&,       \
                                                                const WholeColumns<T>&, const matrix::NearNullspace&, \
                                                                const Coarsener&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::multigrid
