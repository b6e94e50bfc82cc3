#include "runtime/multigrid/linked_transfer.hpp"

#include <algorithm>
#include <utility>

#include "core/value_types.hpp"
#include "matrix/coarsening.hpp"
#include "matrix/strength.hpp"
#include "runtime/multigrid/options.hpp"

namespace rmsp::multigrid {
namespace {

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
        const std::int64_t first_node = around_.places().first() / unknowns;
        const std::int64_t own_nodes = around_.places().own() / unknowns;
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
        const matrix::Tentative own = matrix::tentative(std::move(nodes), how.unknowns,
                                                        given.values.empty() && around_.places().own() > 0
                                                            ? matrix::constants(around_.places().own(), given.count)
                                                            : given);
        this->first_rows = links.offsets(own.columns());
        this->near = own.coarse;
        if (is_stalled(this->first_rows.back(), rows)) {
            return;
        }

        // The same of the rows around: the aggregate, what T has, and for one vector its length on the aggregate.
        const auto count = static_cast<std::size_t>(own.count);
        std::vector<std::int64_t> number(around_.places().size(), -1);
        std::vector<double> values(around_.places().size() * count);
        std::vector<double> lengths(around_.places().size());
        for (std::int64_t i = 0; i < around_.places().own(); ++i) {
            const auto row = static_cast<std::size_t>(around_.places().first() + i);
            const std::int32_t aggregate = own.nodes.number[static_cast<std::size_t>(i / unknowns)];
            std::copy_n(own.values.begin() + i * own.count, count,
                        values.begin() + static_cast<std::ptrdiff_t>(row * count));
            if (aggregate >= 0) {
                number[row] = this->first_rows[links.rank()] / own.count + aggregate;
                lengths[row] = own.coarse.values[static_cast<std::size_t>(aggregate) * count * count];
            }
        }
        around_.places().share(std::span(number));
        around_.places().share(std::span(values), count);
        around_.places().share(std::span(lengths));
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
                           around_.places(), whole_, t_.count);
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
        return linked_classical(links, std::move(around), first_rows.back(), how);
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
