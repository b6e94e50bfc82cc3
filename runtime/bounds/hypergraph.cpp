#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "runtime/bounds/pattern.hpp"

namespace rmsp::bounds {
namespace {

/// Appends a net for each of `nets` entries; entry[v] is that of vertex v. Entries without a vertex get none.
std::int64_t add_nets(Hypergraph& graph, const std::vector<std::int32_t>& entry, std::int64_t nets)
{
    std::vector<std::int64_t> next(static_cast<std::size_t>(nets) + 1, 0);
    for (const std::int32_t e : entry) {
        ++next[static_cast<std::size_t>(e) + 1];
    }
    std::partial_sum(next.begin(), next.end(), next.begin());
    const std::size_t first = graph.pins.size();
    std::int64_t added = 0;
    for (std::size_t e = 0; e < static_cast<std::size_t>(nets); ++e) {
        if (next[e + 1] > next[e]) {
            graph.net_ptr.push_back(static_cast<std::int64_t>(first) + next[e + 1]);
            ++added;
        }
    }
    graph.pins.resize(first + entry.size());
    for (std::size_t v = 0; v < entry.size(); ++v) {
        graph.pins[first + static_cast<std::size_t>(next[static_cast<std::size_t>(entry[v])]++)] =
            static_cast<std::int32_t>(v);
    }
    return added;
}

}  // namespace

MultiplyGraph multiply_graph(const Operation& op, const Counts& counts)
{
    const bool vector = op.b == nullptr;
    const auto n = static_cast<std::size_t>(counts.multiplies);
    MultiplyGraph out;
    out.row.reserve(n);
    out.column.reserve(n);
    std::vector<std::int32_t> a_entry;
    std::vector<std::int32_t> b_entry;
    std::vector<std::int32_t> c_entry;
    a_entry.reserve(n);
    b_entry.reserve(n);
    c_entry.reserve(n);
    std::vector<std::int64_t> place(static_cast<std::size_t>(vector ? 0 : op.b->cols), -1);
    std::int64_t c_end = 0;
    for (std::int64_t row = 0; row < op.a.rows; ++row) {
        const std::int64_t c_first = c_end;
        for (std::int64_t k = op.a.begin(row); k < op.a.end(row); ++k) {
            const std::int32_t inner = op.a.column(k);
            const std::int64_t first = vector ? inner : op.b->begin(inner);
            const std::int64_t end = vector ? first + 1 : op.b->end(inner);
            for (std::int64_t l = first; l < end; ++l) {
                const std::int32_t column = vector ? inner : op.b->column(l);
                std::int64_t at = row;
                if (!vector) {
                    std::int64_t& last = place[static_cast<std::size_t>(column)];
                    if (last < c_first) {
                        last = c_end++;
                    }
                    at = last;
                }
                out.row.push_back(static_cast<std::int32_t>(row));
                out.column.push_back(column);
                a_entry.push_back(static_cast<std::int32_t>(k));
                b_entry.push_back(static_cast<std::int32_t>(l));
                c_entry.push_back(static_cast<std::int32_t>(at));
            }
        }
    }
    out.graph.vertex_weight.assign(n, 1);
    out.graph.net_ptr.assign(1, 0);
    out.a_nets = add_nets(out.graph, a_entry, op.a.nnz());
    out.b_nets = add_nets(out.graph, b_entry, vector ? op.a.cols : op.b->nnz());
    add_nets(out.graph, c_entry, counts.c_nnz);
    return out;
}

std::vector<std::int32_t> vote(const MultiplyGraph& multiplies, const std::vector<std::int32_t>& part_of,
                               std::int64_t rows)
{
    const auto n = static_cast<std::size_t>(rows);
    std::vector<std::int64_t> first(n + 1, 0);
    const auto each = [&](auto&& f) {
        for (std::size_t v = 0; v < part_of.size(); ++v) {
            f(static_cast<std::size_t>(multiplies.row[v]), part_of[v]);
            f(static_cast<std::size_t>(multiplies.column[v]), part_of[v]);
        }
    };
    each([&](std::size_t row, std::int32_t) { ++first[row + 1]; });
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<std::int32_t> votes(2 * part_of.size());
    std::vector<std::int64_t> next(first.begin(), first.end() - 1);
    each([&](std::size_t row, std::int32_t part) { votes[static_cast<std::size_t>(next[row]++)] = part; });
    std::vector<std::int32_t> chosen(n, 0);
    for (std::size_t row = 0; row < n; ++row) {
        const auto begin = votes.begin() + static_cast<std::ptrdiff_t>(first[row]);
        const auto end = votes.begin() + static_cast<std::ptrdiff_t>(first[row + 1]);
        std::sort(begin, end);
        std::ptrdiff_t most = 0;
        for (auto at = begin; at != end;) {
            const auto behind = std::upper_bound(at, end, *at);
            if (behind - at > most) {
                most = behind - at;
                chosen[row] = *at;
            }
            at = behind;
        }
    }
    return chosen;
}

HostVector<std::int64_t> order_by_part(const std::vector<std::int32_t>& part_of_row)
{
    HostVector<std::int64_t> order(part_of_row.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
        return part_of_row[static_cast<std::size_t>(i)] < part_of_row[static_cast<std::size_t>(j)];
    });
    return order;
}

HostVector<std::int64_t> order_by_length(const Pattern& a)
{
    HostVector<std::int64_t> order(static_cast<std::size_t>(a.rows));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t i, std::int64_t j) { return a.length(i) > a.length(j); });
    return order;
}

}  // namespace rmsp::bounds
