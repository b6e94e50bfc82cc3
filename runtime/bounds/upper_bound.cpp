#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "runtime/bounds/pattern.hpp"

namespace rmsp::bounds {
namespace {

std::vector<std::int32_t> partition(const CharacterizeOptions& options, const Hypergraph& graph, std::int32_t parts)
{
    std::vector<std::int32_t> part_of = options.partitioner.partition(graph, parts);
    if (static_cast<std::int64_t>(part_of.size()) != graph.vertices() ||
        std::any_of(part_of.begin(), part_of.end(), [&](std::int32_t p) { return p < 0 || p >= parts; })) {
        throw Error(ErrorCode::usage,
                    fmt::format("partitioner \"{}\" was asked for parts 0 to {} of {} vertices, and gave others",
                                options.partitioner.name, parts - 1, graph.vertices()));
    }
    return part_of;
}

/// Calls f(net, part) once for each part that has a vertex of a net, in the order of the nets.
template <class F>
void for_each_part(const Hypergraph& graph, const std::vector<std::int32_t>& part_of, std::int32_t parts, const F& f)
{
    std::vector<std::int64_t> last(static_cast<std::size_t>(parts), -1);
    for (std::int64_t net = 0; net < graph.nets(); ++net) {
        const auto n = static_cast<std::size_t>(net);
        for (std::int64_t p = graph.net_ptr[n]; p < graph.net_ptr[n + 1]; ++p) {
            const auto part =
                static_cast<std::size_t>(part_of[static_cast<std::size_t>(graph.pins[static_cast<std::size_t>(p)])]);
            if (last[part] != net) {
                last[part] = net;
                f(net, part);
            }
        }
    }
}

/// The loop at line 8 of Algorithm 3: what each part uses.
std::vector<Touches> touches_of_parts(const MultiplyGraph& multiplies, const std::vector<std::int32_t>& part_of,
                                      std::int32_t parts)
{
    std::vector<Touches> out(static_cast<std::size_t>(parts));
    for_each_part(multiplies.graph, part_of, parts, [&](std::int64_t net, std::size_t part) {
        Touches& t = out[part];
        ++(net < multiplies.a_nets ? t.a : net < multiplies.a_nets + multiplies.b_nets ? t.b : t.c);
    });
    return out;
}

/// The fewest parts, by doubling from 2, whose shares of everything could fit: with fewer some part cannot.
std::int32_t first_parts(std::int64_t bytes, std::int64_t fast_bytes, std::int64_t vertices)
{
    std::int64_t parts = 2;
    while (parts * fast_bytes < bytes) {
        parts *= 2;
    }
    return static_cast<std::int32_t>(std::min(parts, std::max<std::int64_t>(vertices, 2)));
}

/// A vertex for each row, a net for each column: the entry of x, or the row of B, that its rows share.
Hypergraph row_graph(const Operation& op)
{
    Hypergraph graph;
    std::vector<std::int64_t> next(static_cast<std::size_t>(op.a.cols) + 1, 0);
    for (const std::int32_t column : op.a.col_idx) {
        ++next[static_cast<std::size_t>(column) + 1];
    }
    for (std::size_t i = 1; i < next.size(); ++i) {
        next[i] += next[i - 1];
    }
    graph.net_ptr = next;
    graph.pins.resize(op.a.col_idx.size());
    for (std::int64_t row = 0; row < op.a.rows; ++row) {
        std::int64_t weight = 0;
        for (std::int64_t k = op.a.begin(row); k < op.a.end(row); ++k) {
            const std::int32_t column = op.a.column(k);
            graph.pins[static_cast<std::size_t>(next[static_cast<std::size_t>(column)]++)] =
                static_cast<std::int32_t>(row);
            weight += op.partners(column);
        }
        graph.vertex_weight.push_back(weight);
    }
    for (std::int32_t column = 0; column < op.a.cols; ++column) {
        graph.net_weight.push_back(op.partners(column));
    }
    return graph;
}

/// Whether each part that has more than one row fits the fast memory.
bool rows_fit(const Operation& op, const Counts& counts, const Hypergraph& graph,
              const std::vector<std::int32_t>& part_of, std::int32_t parts, std::int64_t fast_bytes)
{
    std::vector<Touches> held(static_cast<std::size_t>(parts));
    std::vector<std::int64_t> rows(held.size(), 0);
    for (std::int64_t row = 0; row < op.a.rows; ++row) {
        const auto r = static_cast<std::size_t>(row);
        Touches& part = held[static_cast<std::size_t>(part_of[r])];
        part.a += op.a.length(row);
        part.c += op.b == nullptr ? 1 : counts.c_row_ptr[r + 1] - counts.c_row_ptr[r];
        ++rows[static_cast<std::size_t>(part_of[r])];
    }
    for_each_part(graph, part_of, parts, [&](std::int64_t net, std::size_t part) {
        held[part].b += graph.net_weight[static_cast<std::size_t>(net)];
    });
    for (std::size_t p = 0; p < held.size(); ++p) {
        if (rows[p] > 1 && footprint_bytes(op, held[p]) > fast_bytes) {
            return false;
        }
    }
    return true;
}

/// Calls try_parts(parts) with twice as many parts each time, until it returns true or each vertex has a part.
template <class F>
std::int64_t double_parts(std::int64_t bytes, std::int64_t fast_bytes, std::int64_t vertices, F&& try_parts)
{
    std::int64_t partitions = 1;
    const auto most = static_cast<std::int32_t>(std::max<std::int64_t>(vertices, 2));
    for (std::int32_t parts = first_parts(bytes, fast_bytes, vertices); !try_parts(parts, parts == most);
         ++partitions) {
        parts = parts > most / 2 ? most : 2 * parts;
    }
    return partitions;
}

Bound by_multiplies(const Operation& op, const Counts& counts, const CharacterizeOptions& options, std::int64_t bytes)
{
    const MultiplyGraph multiplies = multiply_graph(op, counts);
    Bound bound;
    std::vector<std::int32_t> part_of;
    bound.upper.partitions =
        double_parts(bytes, options.fast_bytes, counts.multiplies, [&](std::int32_t parts, bool singly) {
            part_of = partition(options, multiplies.graph, parts);
            if (singly) {  // whatever the partitioner says: a part for each fits
                for (std::size_t v = 0; v < part_of.size(); ++v) {
                    part_of[v] = static_cast<std::int32_t>(v);
                }
            }
            const std::vector<Touches> touches = touches_of_parts(multiplies, part_of, parts);
            Touches all;
            std::int64_t used = 0;
            for (const Touches& part : touches) {
                if (footprint_bytes(op, part) > options.fast_bytes) {
                    return false;
                }
                all.a += part.a;
                all.b += part.b;
                all.c += part.c;
                used += part.a > 0 ? 1 : 0;
            }
            bound.upper.parts = used;
            bound.upper.moved = traffic(op, counts, all);
            return true;
        });
    bound.upper.method = "multiplies";
    if (op.a.rows == op.a.cols && (op.b == nullptr || op.b->cols == op.a.rows)) {
        bound.part_of_row = vote(multiplies, part_of, op.a.rows);
    }
    return bound;
}

Bound by_rows(const Operation& op, const Counts& counts, const CharacterizeOptions& options, std::int64_t bytes)
{
    const Hypergraph graph = row_graph(op);
    Bound bound;
    bound.upper.partitions = double_parts(bytes, options.fast_bytes, op.a.rows, [&](std::int32_t parts, bool singly) {
        bound.part_of_row = partition(options, graph, parts);
        return singly || rows_fit(op, counts, graph, bound.part_of_row, parts, options.fast_bytes);
    });
    const HostVector<std::int64_t> by_part = order_by_part(bound.part_of_row);
    const std::vector<std::int64_t> order(by_part.begin(), by_part.end());
    // A part of one row that does not fit is cut where the fast memory is full.
    const Cut cut = cut_rows(op, options.fast_bytes, &order, &bound.part_of_row);
    bound.upper.method = "rows";
    bound.upper.parts = cut.parts;
    bound.upper.moved = traffic(op, counts, cut.touches);
    return bound;
}

}  // namespace

Bound upper_bound(const Operation& op, const Counts& counts, const CharacterizeOptions& options)
{
    const Touches once{counts.a_used, counts.b_used, counts.c_used};
    const std::int64_t bytes = footprint_bytes(op, once);
    Bound bound;
    if (bytes <= options.fast_bytes) {
        bound.upper.method = "one part";
        bound.upper.moved = traffic(op, counts, once);
        bound.part_of_row.assign(static_cast<std::size_t>(op.a.rows), 0);
        return bound;
    }
    // Numbers of multiplies and entries are 32-bit in the graph.
    const bool fine = counts.multiplies <= std::min<std::int64_t>(options.fine_limit, INT32_MAX) &&
                      op.a.nnz() <= INT32_MAX && (op.b == nullptr || op.b->nnz() <= INT32_MAX);
    bound = fine ? by_multiplies(op, counts, options, bytes) : by_rows(op, counts, options, bytes);
    bound.upper.partitioner = options.partitioner.name;
    const Cut natural = cut_rows(op, options.fast_bytes, nullptr, nullptr);
    const Traffic moved = traffic(op, counts, natural.touches);
    if (moved.bytes < bound.upper.moved.bytes) {
        bound.upper.method = "row order";
        bound.upper.parts = natural.parts;
        bound.upper.moved = moved;
    }
    return bound;
}

}  // namespace rmsp::bounds
