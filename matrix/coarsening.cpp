#include "matrix/coarsening.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "matrix/for_each_row.hpp"

namespace rmsp::matrix {
namespace {

enum State : std::uint8_t { undecided, fine, coarse };

/// Bits that look random and depend on a row's number alone (splitmix64).
std::uint64_t hashed(std::int64_t row)
{
    std::uint64_t bits = (static_cast<std::uint64_t>(row) + 1) * 0x9e3779b97f4a7c15U;
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31U);
}

template <class X>
HostVector<X> filled(std::int64_t size, X value)
{
    HostVector<X> all(static_cast<std::size_t>(size));
    std::fill(all.begin(), all.end(), value);
    return all;
}

/// The part that is all of a graph.
PartOfRows all_of(const Graph& graph)
{
    PartOfRows all;
    all.end = graph.rows();
    return all;
}

/// Gives what was chosen of rows [first, end) numbers in the order of the rows.
Coarsening numbered(const HostVector<std::uint8_t>& state, std::int64_t first, std::int64_t end)
{
    Coarsening out{filled<std::int32_t>(static_cast<std::int64_t>(state.size()), -1), 0};
    for (auto row = static_cast<std::size_t>(first); row < static_cast<std::size_t>(end); ++row) {
        if (state[row] == coarse) {
            out.number[row] = static_cast<std::int32_t>(out.count++);
        }
    }
    return out;
}

}  // namespace

HostVector<std::int64_t> rows_of_points(const Coarsening& coarse)
{
    HostVector<std::int64_t> rows(static_cast<std::size_t>(coarse.count));
    for (std::size_t row = 0; row < coarse.number.size(); ++row) {
        if (coarse.number[row] >= 0) {
            rows[static_cast<std::size_t>(coarse.number[row])] = static_cast<std::int64_t>(row);
        }
    }
    return rows;
}

Coarsening pmis(const Graph& depends) { return pmis(depends, all_of(depends)); }

Coarsening pmis(const Graph& depends, const PartOfRows& part)
{
    const std::int64_t rows = depends.rows();
    const Graph near = symmetrised(depends);
    HostVector<std::int32_t> needed_by = in_degrees(depends);
    auto state = filled<std::uint8_t>(rows, undecided);
    const auto share_states = [&] {
        if (part.share_states) {
            part.share_states(state);
        }
    };
    if (part.share_counts) {
        part.share_counts(needed_by);
    }
    HostVector<std::int64_t> open;
    for (std::int64_t row = part.first; row < part.end; ++row) {
        if (needed_by[static_cast<std::size_t>(row)] == 0) {
            state[static_cast<std::size_t>(row)] = fine;
        } else {
            open.push_back(row);
        }
    }
    share_states();
    const auto number = [&](std::int64_t row) {
        return part.numbers.empty() ? row : part.numbers[static_cast<std::size_t>(row)];
    };
    const auto before = [&](std::int64_t a, std::int64_t b) {
        const std::int32_t of_a = needed_by[static_cast<std::size_t>(a)];
        const std::int32_t of_b = needed_by[static_cast<std::size_t>(b)];
        return of_a != of_b ? of_a > of_b : std::pair(hashed(number(a)), a) > std::pair(hashed(number(b)), b);
    };
    HostVector<std::uint8_t> chosen;
    while (part.any ? part.any(!open.empty()) : !open.empty()) {
        const auto count = static_cast<std::int64_t>(open.size());
        chosen.resize(open.size());
        for_each_row(count, [&](std::int64_t i) {
            const std::int64_t row = open[static_cast<std::size_t>(i)];
            bool first = true;
            for (const std::int32_t other : near.neighbours(row)) {
                first = first && (state[static_cast<std::size_t>(other)] != undecided || before(row, other));
            }
            chosen[static_cast<std::size_t>(i)] = first ? 1 : 0;
        });
        for_each_row(count, [&](std::int64_t i) {
            if (chosen[static_cast<std::size_t>(i)] != 0) {
                state[static_cast<std::size_t>(open[static_cast<std::size_t>(i)])] = coarse;
            }
        });
        share_states();
        for_each_row(count, [&](std::int64_t i) {
            const std::int64_t row = open[static_cast<std::size_t>(i)];
            if (chosen[static_cast<std::size_t>(i)] == 0) {
                const auto on = depends.neighbours(row);
                if (std::any_of(on.begin(), on.end(),
                                [&](std::int32_t other) { return state[static_cast<std::size_t>(other)] == coarse; })) {
                    chosen[static_cast<std::size_t>(i)] = 2;
                }
            }
        });
        std::size_t left = 0;
        for (std::size_t i = 0; i < open.size(); ++i) {
            if (chosen[i] == 2) {
                state[static_cast<std::size_t>(open[i])] = fine;
            } else if (chosen[i] == 0) {
                open[left++] = open[i];
            }
        }
        open.resize(left);
        share_states();
    }
    return numbered(state, part.first, part.end);
}

Graph graph_of_points(const Graph& depends, const Coarsening& first)
{
    const HostVector<std::int64_t> row_of = rows_of_points(first);
    // f(other) for the coarse points that a coarse point depends on, rising, each once.
    const auto for_each_near = [&](std::int64_t point, std::vector<std::int32_t>& near, const auto& f) {
        near.clear();
        const auto take = [&](std::int32_t row) {
            const std::int32_t other = first.number[static_cast<std::size_t>(row)];
            if (other >= 0 && other != point) {
                near.push_back(other);
            }
        };
        for (const std::int32_t between : depends.neighbours(row_of[static_cast<std::size_t>(point)])) {
            take(between);
            const auto behind = depends.neighbours(between);
            std::for_each(behind.begin(), behind.end(), take);
        }
        std::sort(near.begin(), near.end());
        near.erase(std::unique(near.begin(), near.end()), near.end());
        std::for_each(near.begin(), near.end(), f);
    };
    Graph graph;
    graph.row_ptr = filled<std::int64_t>(first.count + 1, 0);
    constexpr std::int64_t points_each = 1024;
    for_row_ranges(first.count, points_each, [&](std::int64_t begin, std::int64_t end) {
        std::vector<std::int32_t> near;
        for (std::int64_t point = begin; point < end; ++point) {
            for_each_near(point, near, [&](std::int32_t) { ++graph.row_ptr[static_cast<std::size_t>(point) + 1]; });
        }
    });
    std::partial_sum(graph.row_ptr.begin(), graph.row_ptr.end(), graph.row_ptr.begin());
    graph.col_idx.resize(static_cast<std::size_t>(graph.row_ptr.back()));
    for_row_ranges(first.count, points_each, [&](std::int64_t begin, std::int64_t end) {
        std::vector<std::int32_t> near;
        for (std::int64_t point = begin; point < end; ++point) {
            auto to = static_cast<std::size_t>(graph.row_ptr[static_cast<std::size_t>(point)]);
            for_each_near(point, near, [&](std::int32_t other) { graph.col_idx[to++] = other; });
        }
    });
    return graph;
}

HostVector<std::uint8_t> staying_points(const Graph& points, const PartOfRows& part)
{
    const Coarsening chosen = pmis(points, part);
    HostVector<std::uint8_t> marks(chosen.number.size());
    std::transform(chosen.number.begin(), chosen.number.end(), marks.begin(),
                   [](std::int32_t number) { return static_cast<std::uint8_t>(number >= 0 ? 1 : 0); });
    if (part.share_states) {
        part.share_states(marks);
    }
    HostVector<std::uint8_t> stay = marks;
    for (std::int64_t point = part.first; point < part.end; ++point) {
        const auto near = points.neighbours(point);
        if (std::none_of(near.begin(), near.end(),
                         [&](std::int32_t other) { return marks[static_cast<std::size_t>(other)] != 0; })) {
            stay[static_cast<std::size_t>(point)] = 1;
        }
    }
    return stay;
}

Coarsening coarser_pmis(const Graph& depends, const Coarsening& first)
{
    const Graph points = graph_of_points(depends, first);
    const HostVector<std::uint8_t> stay = staying_points(points, all_of(points));
    Coarsening out{filled<std::int32_t>(depends.rows(), -1), 0};
    for (std::size_t row = 0; row < first.number.size(); ++row) {
        if (first.number[row] >= 0 && stay[static_cast<std::size_t>(first.number[row])] != 0) {
            out.number[row] = static_cast<std::int32_t>(out.count++);
        }
    }
    return out;
}

Coarsening aggregates(const Graph& graph)
{
    const std::int64_t rows = graph.rows();
    // A row becomes a root unless a row before it, one or two steps away, is one: each marks its neighbours.
    Coarsening out{filled<std::int32_t>(rows, -1), 0};
    auto taken = filled<std::uint8_t>(rows, 0);
    const auto is_taken = [&](std::int32_t row) { return taken[static_cast<std::size_t>(row)] != 0; };
    for (std::int64_t row = 0; row < rows; ++row) {
        const auto near = graph.neighbours(row);
        if (near.empty() || is_taken(static_cast<std::int32_t>(row)) ||
            std::any_of(near.begin(), near.end(), is_taken)) {
            continue;
        }
        taken[static_cast<std::size_t>(row)] = 1;
        for (const std::int32_t other : near) {
            taken[static_cast<std::size_t>(other)] = 1;
        }
        out.number[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(out.count++);
    }
    // Neighbours of a root have no other one: roots are three steps apart.
    HostVector<std::int32_t> joined = out.number;
    for_each_row(rows, [&](std::int64_t row) {
        for (const std::int32_t other : graph.neighbours(row)) {
            if (out.number[static_cast<std::size_t>(row)] < 0 && out.number[static_cast<std::size_t>(other)] >= 0) {
                joined[static_cast<std::size_t>(row)] = out.number[static_cast<std::size_t>(other)];
            }
        }
    });
    // The rest joins the aggregate that most of its neighbours are in.
    for_row_ranges(rows, 4096, [&](std::int64_t begin, std::int64_t end) {
        std::vector<std::int32_t> seen;
        for (std::int64_t row = begin; row < end; ++row) {
            std::int32_t best = joined[static_cast<std::size_t>(row)];
            if (best < 0) {
                seen.clear();
                for (const std::int32_t other : graph.neighbours(row)) {
                    if (joined[static_cast<std::size_t>(other)] >= 0) {
                        seen.push_back(joined[static_cast<std::size_t>(other)]);
                    }
                }
                std::sort(seen.begin(), seen.end());
                std::ptrdiff_t most = 0;
                for (auto from = seen.begin(); from != seen.end();) {
                    const auto to = std::upper_bound(from, seen.end(), *from);
                    if (to - from > most) {
                        most = to - from;
                        best = *from;
                    }
                    from = to;
                }
            }
            out.number[static_cast<std::size_t>(row)] = best;
        }
    });
    return out;
}

}  // namespace rmsp::matrix
