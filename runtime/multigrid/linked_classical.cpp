#include <algorithm>
#include <utility>
#include <vector>

#include "core/value_types.hpp"
#include "matrix/coarsening.hpp"
#include "matrix/interpolation.hpp"
#include "matrix/strength.hpp"
#include "runtime/multigrid/linked_transfer.hpp"
#include "runtime/multigrid/options.hpp"

namespace rmsp::multigrid {
namespace {

/// What the processes that share a graph tell each other while they choose of it.
matrix::PartOfRows part_of(const Links& links, const AmongOthers& places)
{
    matrix::PartOfRows part;
    part.first = places.first();
    part.end = places.first() + places.own();
    part.numbers = places.numbers();
    part.share_counts = [&places](std::span<std::int32_t> counts) { places.share(counts); };
    part.share_states = [&places](std::span<std::uint8_t> states) { places.share(states); };
    part.any = [&links](bool own) { return links.total(own ? 1.0 : 0.0) > 0; };
    return part;
}

struct Edge {
    std::int64_t from;
    std::int64_t to;
};

/// Marks of the own coarse points that stay when coarsening is done again.
/// \param offsets  the first point of each process, and their number
/// \param graph  of the points here, whole for the own ones
/// \param points  the numbers of these points
HostVector<std::uint8_t> staying_points(const Links& links, const std::vector<std::int64_t>& offsets,
                                        const matrix::Graph& graph, const std::vector<std::int64_t>& points)
{
    const std::int64_t first = offsets[links.rank()];
    const std::int64_t end = offsets[links.rank() + 1];
    const auto begin_here = std::lower_bound(points.begin(), points.end(), first) - points.begin();
    // An edge to a point of another process is seen where it begins: the other one has to hear of it.
    std::vector<std::vector<Edge>> to(links.size());
    std::vector<std::int64_t> others;
    std::vector<Edge> edges;
    for (std::int64_t point = first; point < end; ++point) {
        for (const std::int32_t at : graph.neighbours(begin_here + point - first)) {
            const std::int64_t other = points[static_cast<std::size_t>(at)];
            edges.push_back({point, other});
            if (other < first || other >= end) {
                const auto owner = std::upper_bound(offsets.begin(), offsets.end(), other) - offsets.begin() - 1;
                to[static_cast<std::size_t>(owner)].push_back({point, other});
                others.push_back(other);
            }
        }
    }
    for (const std::vector<Edge>& came : links.bring(to)) {
        for (const Edge& edge : came) {
            edges.push_back(edge);
            others.push_back(edge.from);
        }
    }
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    const AmongOthers places(links, first, end - first, ask(links, offsets, std::move(others)));
    std::sort(edges.begin(), edges.end(),
              [](const Edge& a, const Edge& b) { return std::pair(a.from, a.to) < std::pair(b.from, b.to); });
    matrix::Graph around;
    around.row_ptr.push_back(0);
    auto next = edges.begin();
    for (const std::int64_t number : places.numbers()) {
        for (; next != edges.end() && next->from == number; ++next) {
            around.col_idx.push_back(places.here(next->to));
        }
        around.row_ptr.push_back(static_cast<std::int64_t>(around.col_idx.size()));
    }
    const HostVector<std::uint8_t> stay = matrix::staying_points(around, part_of(links, places));
    return {stay.begin() + places.first(), stay.begin() + places.first() + places.own()};
}

template <class T>
class LinkedClassical final : public LinkedTransfer<T> {
public:
    LinkedClassical(const Links& links, Around<T> around, std::int64_t rows, const Coarsener& how)
        : links_(links),
          around_(std::move(around)),
          aggressive_(how.aggressive),
          kind_(how.direct ? matrix::Interpolation::direct : matrix::Interpolation::extended),
          strong_(matrix::strong_entries(around_.a.view(), matrix::Strength::classical, how.threshold))
    {
        const matrix::Graph depends = matrix::strong_graph(around_.a.view(), strong_);
        const AmongOthers& places = around_.places();
        const matrix::Coarsening own = matrix::pmis(depends, part_of(links, places));
        this->first_rows = links.offsets(own.count);
        coarse_ = number_points(own);
        if (aggressive_) {
            choose_again(depends);
        }
        if (is_stalled(this->first_rows.back(), rows)) {
            return;
        }
        const matrix::InterpolationOptions options{kind_, how.truncation, how.interpolation_entries};
        if (aggressive_) {
            stages_.to_all = matrix::interpolation(around_.a.view(), strong_, first_.here, options);
            to_first_here_ = matrix::interpolation(around_.a.view(), strong_, coarse_.here, options, &first_.here);
            bring_second_stage();
            matrix::multiply_stages(stages_, first_.here, options);
        } else {
            stages_.p = matrix::interpolation(around_.a.view(), strong_, coarse_.here, options);
        }
        take_p();
    }
    void renew(const WholeColumns<T>& rows) override
    {
        around_.renew(rows);
        if (aggressive_) {
            matrix::renew_interpolation(around_.a.view(), strong_, first_.here, kind_, stages_.to_all);
            matrix::renew_interpolation(around_.a.view(), strong_, coarse_.here, kind_, to_first_here_);
            bring_second_stage();
            matrix::renew_product(stages_, first_.here);
        } else {
            matrix::renew_interpolation(around_.a.view(), strong_, coarse_.here, kind_, stages_.p);
        }
        take_p();
    }
    std::int64_t host_bytes() const override
    {
        std::int64_t bytes = around_.host_bytes() + static_cast<std::int64_t>(strong_.size());
        for (const CsrMatrix<T>* const m : {&stages_.to_all, &stages_.to_first, &stages_.p, &to_first_here_}) {
            bytes += static_cast<std::int64_t>(m->values.size() * (sizeof(T) + sizeof(std::int32_t)));
        }
        return bytes;
    }

private:
    /// Of own points and of those around, from the numbers of the own ones from 0 on.
    Numbered number_points(const matrix::Coarsening& own) const
    {
        const AmongOthers& places = around_.places();
        std::vector<std::int64_t> number(places.size(), -1);
        for (std::int64_t row = places.first(); row < places.first() + places.own(); ++row) {
            const std::int32_t found = own.number[static_cast<std::size_t>(row)];
            number[static_cast<std::size_t>(row)] = found < 0 ? -1 : this->first_rows[links_.rank()] + found;
        }
        places.share(std::span(number));
        return numbered_here(number);
    }

    /// Coarse points of the coarse points.
    void choose_again(const matrix::Graph& depends)
    {
        first_ = std::move(coarse_);
        const std::vector<std::int64_t>& offsets = this->first_rows;
        const HostVector<std::uint8_t> stay =
            staying_points(links_, offsets, matrix::graph_of_points(depends, first_.here), first_.whole);
        const AmongOthers& places = around_.places();
        matrix::Coarsening last;
        last.number.assign(places.size(), -1);
        std::size_t point = 0;
        for (std::int64_t row = places.first(); row < places.first() + places.own(); ++row) {
            if (first_.here.number[static_cast<std::size_t>(row)] >= 0 && stay[point++] != 0) {
                last.number[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(last.count++);
            }
        }
        this->first_rows = links_.offsets(last.count);
        coarse_ = number_points(last);
    }

    /// Sets the second stage of all rows here: each from the process that has the row, which knows all around it.
    void bring_second_stage()
    {
        const AmongOthers& places = around_.places();
        const WholeColumns<T> own = own_rows(to_first_here_, places, coarse_.whole, 1);
        const WholeColumns<T> others = rows_of(links_, places.known(), own);
        WholeColumns<T> all;
        const auto append = [&](const WholeColumns<T>& from, std::int64_t begin, std::int64_t end) {
            for (std::int64_t row = begin; row < end; ++row) {
                for (std::int64_t k = from.begin(row); k < from.end(row); ++k) {
                    all.add(from.columns[static_cast<std::size_t>(k)], from.values[static_cast<std::size_t>(k)]);
                }
                all.close();
            }
        };
        append(others, 0, places.first());
        append(own, 0, own.rows());
        append(others, places.first(), others.rows());
        columns_ = multigrid::others(all, 0, 0);
        stages_.to_first = numbered(all, 0, 0, columns_);
    }

    void take_p()
    {
        this->p = own_rows(stages_.p, around_.places(), aggressive_ ? columns_ : coarse_.whole, 1);
        around_.forget_values();
    }

    const Links links_;
    Around<T> around_;
    bool aggressive_;
    matrix::Interpolation kind_;
    HostVector<std::uint8_t> strong_;
    Numbered first_;  ///< aggressive: what coarse_ was chosen from
    Numbered coarse_;
    matrix::TwoStages<T> stages_;        ///< P of all rows here; the stages are of aggressive coarsening alone
    CsrMatrix<T> to_first_here_;         ///< the second stage in the columns of coarse_, right in the own rows
    std::vector<std::int64_t> columns_;  ///< of the second stage that others have a share in, in the whole matrix
};

}  // namespace

template <class T>
std::unique_ptr<LinkedTransfer<T>> linked_classical(const Links& links, Around<T> around, std::int64_t rows,
                                                    const Coarsener& how)
{
    return std::make_unique<LinkedClassical<T>>(links, std::move(around), rows, how);
}

#define RMSP_INSTANTIATE(T)                                                                             \
    template std::unique_ptr<LinkedTransfer<T>> linked_classical(const Links&, Around<T>, std::int64_t, \
                                                                 const Coarsener&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::multigrid
