#include "apps/mspmv/cluster_exchange.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <rmsp/partition.hpp>
#include <rmsp/value_types.hpp>

#include "apps/mspmv/generated_size.hpp"

namespace rmsp::mspmv {
namespace {

/// [first, end)
using Range = std::pair<std::int64_t, std::int64_t>;

std::vector<std::int64_t> even_cuts(std::int64_t count, int nodes)
{
    std::vector<std::int64_t> cuts;
    for (std::int64_t i = 0; i <= nodes; ++i) {
        cuts.push_back(count / nodes * i + std::min<std::int64_t>(i, count % nodes));
    }
    return cuts;
}

/// Who has a row or column.
std::size_t owner(const std::vector<std::int64_t>& cuts, std::int64_t of)
{
    return static_cast<std::size_t>(std::upper_bound(cuts.begin(), cuts.end(), of) - cuts.begin()) - 1;
}

NodeExchange most_of(const std::vector<NodeExchange>& nodes)
{
    NodeExchange most;
    for (const NodeExchange& node : nodes) {
        most.ghosts = std::max(most.ghosts, node.ghosts);
        most.messages = std::max(most.messages, node.messages);
        most.outside = std::max(most.outside, node.outside);
    }
    return most;
}

double mean_ghosts(const std::vector<NodeExchange>& nodes)
{
    double sum = 0;
    for (const NodeExchange& node : nodes) {
        sum += node.ghosts;
    }
    return sum / static_cast<double>(nodes.size());
}

/// 1 + 2 + ... + n
double triangle(double n) { return n * (n + 1) / 2; }

/// Rows of a matrix whose row i has columns i + d for the offsets d in some ranges.
class Shifts {
public:
    Shifts(std::vector<Range> offsets, double nonzeros_a_row) : offsets_(std::move(offsets)), per_row_(nonzeros_a_row)
    {
    }

    NodeExchange of(int nodes, std::int64_t rows) const
    {
        const std::vector<std::int64_t> cuts = even_cuts(rows, nodes);
        std::vector<NodeExchange> all;
        for (std::size_t node = 0; node + 1 < cuts.size(); ++node) {
            all.push_back(of_node(cuts, node));
        }
        return most_of(all);
    }

private:
    NodeExchange of_node(const std::vector<std::int64_t>& cuts, std::size_t node) const
    {
        const std::int64_t first = cuts[node];
        const std::int64_t end = cuts[node + 1];
        const auto own = static_cast<double>(end - first);
        std::vector<Range> outside;
        double nonzeros = 0;
        for (const auto& [least, most] : offsets_) {
            if (first == end) {
                break;
            }
            outside.emplace_back(std::max<std::int64_t>(0, first + least), std::min(first, end + most));
            outside.emplace_back(std::max(end, first + least), std::min(cuts.back(), end + most));
            nonzeros += crossing(most, least, own, static_cast<double>(cuts.back() - end));
            nonzeros += crossing(-least, -most, own, static_cast<double>(first));
        }
        std::sort(outside.begin(), outside.end());
        NodeExchange exchange;
        std::set<std::size_t> owners;
        std::int64_t done = 0;
        for (auto [from, to] : outside) {
            from = std::max(from, done);
            if (from >= to) {
                continue;
            }
            exchange.ghosts += static_cast<double>(to - from);
            done = to;
            for (std::size_t other = owner(cuts, from); other < cuts.size() - 1 && cuts[other] < to; ++other) {
                if (cuts[other] < cuts[other + 1]) {
                    owners.insert(other);
                }
            }
        }
        exchange.messages = static_cast<double>(owners.size());
        exchange.outside = own > 0 ? std::min(1.0, nonzeros / (own * per_row_)) : 0;
        return exchange;
    }

    /// Entries that the offsets from max(1, least) to `most` bring from `own` rows to the `beyond` rows at one side.
    static double crossing(std::int64_t most, std::int64_t least, double own, double beyond)
    {
        // An offset d brings min(own, d) rows out, of which d - beyond are past the last one.
        const auto sum = [&](std::int64_t offset) {
            const double far = std::min(static_cast<double>(offset), own + beyond);
            const double within = std::min(far, own);
            return triangle(within) + own * (far - within) - triangle(std::max(0.0, far - beyond));
        };
        return most < 1 ? 0 : sum(most) - sum(std::max<std::int64_t>(1, least) - 1);
    }

    std::vector<Range> offsets_;
    double per_row_;
};

}  // namespace

template <class T>
NodeCuts cut_for_nodes(const CsrMatrix<T>& a, int nodes)
{
    // As Cluster::scatter().
    PartitionOptions options;
    options.alignment = RowAlignment::row;
    options.row_multiple = 1;
    NodeCuts cuts;
    for (const PartialCsr& part : partition_csr(a.rows, a.cols, a.view().row_ptr, nodes, options).parts) {
        cuts.rows.push_back(part.first_owned_row());
    }
    cuts.rows.push_back(a.rows);
    cuts.cols = a.rows == a.cols ? cuts.rows : even_cuts(a.cols, nodes);
    return cuts;
}

template <class T>
std::vector<std::int64_t> ghost_columns(const CsrMatrix<T>& a, const NodeCuts& cuts, int node)
{
    const auto i = static_cast<std::size_t>(node);
    std::vector<std::int64_t> ghosts;
    a.view().col_idx.visit([&](const auto* columns) {
        for (std::int64_t k = a.row_ptr[static_cast<std::size_t>(cuts.rows[i])];
             k < a.row_ptr[static_cast<std::size_t>(cuts.rows[i + 1])]; ++k) {
            const auto column = static_cast<std::int64_t>(columns[static_cast<std::size_t>(k)]);
            if (column < cuts.cols[i] || column >= cuts.cols[i + 1]) {
                ghosts.push_back(column);
            }
        }
    });
    std::sort(ghosts.begin(), ghosts.end());
    ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
    return ghosts;
}

template <class T>
std::vector<NodeExchange> count_exchange(const CsrMatrix<T>& a, int nodes)
{
    const NodeCuts cuts = cut_for_nodes(a, nodes);
    std::vector<NodeExchange> all(static_cast<std::size_t>(nodes));
    std::vector<std::int32_t> owners(static_cast<std::size_t>(a.cols));
    for (std::size_t node = 0; node < all.size(); ++node) {
        std::fill(owners.begin() + cuts.cols[node], owners.begin() + cuts.cols[node + 1],
                  static_cast<std::int32_t>(node));
    }
    // The last node that was seen to need a column, and to need one of another node; both counted from 1.
    std::vector<std::int32_t> seen(owners.size());
    std::vector<std::int32_t> asked(all.size());
    const std::int32_t* const owner_of = owners.data();
    std::int32_t* const seen_by = seen.data();
    std::int32_t* const asked_by = asked.data();
    a.view().col_idx.visit([&](const auto* columns) {
        for (std::int32_t node = 0; node < nodes; ++node) {
            const auto at = static_cast<std::size_t>(node);
            const std::int64_t begin = a.row_ptr[static_cast<std::size_t>(cuts.rows[at])];
            const std::int64_t end = a.row_ptr[static_cast<std::size_t>(cuts.rows[at + 1])];
            std::int64_t outside = 0;
            std::int64_t ghosts = 0;
            std::int64_t messages = 0;
            for (std::int64_t k = begin; k < end; ++k) {
                const auto column = static_cast<std::int64_t>(columns[k]);
                const std::int32_t owner = owner_of[column];
                if (owner == node) {
                    continue;
                }
                ++outside;
                if (seen_by[column] != node + 1) {
                    seen_by[column] = node + 1;
                    ++ghosts;
                    messages += asked_by[owner] != node + 1 ? 1 : 0;
                    asked_by[owner] = node + 1;
                }
            }
            all[at] = {static_cast<double>(ghosts), static_cast<double>(messages),
                       end > begin ? static_cast<double>(outside) / static_cast<double>(end - begin) : 0};
        }
    });
    return all;
}

template <class T>
ExchangeModel counted_exchange(const CsrMatrix<T>& a, int planned)
{
    const NodeExchange usual = most_of(count_exchange(a, planned));
    return [&a, planned, usual](int nodes, double rows) -> NodeExchange {
        if (nodes == 1) {
            return {};
        }
        if (nodes == planned) {
            return usual;
        }
        if (std::llround(rows) == a.rows) {
            return most_of(count_exchange(a, nodes));
        }
        NodeExchange other = usual;
        other.messages = std::min(other.messages, nodes - 1.0);
        return other;
    };
}

std::optional<ExchangeModel> shifted_exchange(const Config::Matrix& config)
{
    const auto whole = generated_size(config);
    const auto offsets = generated_offsets(config);
    if (!whole || offsets.empty()) {
        return {};
    }
    const auto block = static_cast<double>(config.kron);
    auto shifts = std::make_shared<const Shifts>(offsets, whole->nonzeros / whole->rows / block);
    return [shifts, block](int nodes, double rows) {
        NodeExchange exchange = shifts->of(nodes, std::llround(rows / block));
        exchange.ghosts *= block;
        return exchange;
    };
}

template <class T>
ExchangeModel sampled_exchange(const CsrMatrix<T>& small, const CsrMatrix<T>& large)
{
    struct Law {
        NodeExchange most;  // in the larger sample
        double power = 0;
    };
    // The same for all numbers of rows.
    return [&small, &large, laws = std::map<int, Law>{}](int nodes, double rows) mutable -> NodeExchange {
        const auto [at, is_new] = laws.try_emplace(nodes);
        Law& law = at->second;
        if (is_new) {
            const std::vector<NodeExchange> in_large = count_exchange(large, nodes);
            const double larger = mean_ghosts(in_large);
            const double smaller = mean_ghosts(count_exchange(small, nodes));
            law.most = most_of(in_large);
            if (smaller > 0 && small.rows < large.rows) {
                const double between = std::log(static_cast<double>(large.rows) / static_cast<double>(small.rows));
                // No more than there are columns.
                law.power = std::clamp(std::log(larger / smaller) / between, 0.0, 1.0);
            }
        }
        NodeExchange most = law.most;
        most.ghosts *= std::pow(rows / static_cast<double>(large.rows), law.power);
        return most;
    };
}

#define RMSP_INSTANTIATE(T)                                                                      \
    template NodeCuts cut_for_nodes(const CsrMatrix<T>&, int);                                   \
    template std::vector<std::int64_t> ghost_columns(const CsrMatrix<T>&, const NodeCuts&, int); \
    template std::vector<NodeExchange> count_exchange(const CsrMatrix<T>&, int);                 \
    template ExchangeModel counted_exchange(const CsrMatrix<T>&, int);                           \
    template ExchangeModel sampled_exchange(const CsrMatrix<T>&, const CsrMatrix<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::mspmv
