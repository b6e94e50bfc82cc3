#include "runtime/plan/cluster_text.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/text.hpp"

namespace rmsp::plan {
namespace {

std::string counted(double n) { return text::grouped(std::llround(n)); }

/// \param weak  the time alone is compared, as the work on each node is the same
std::string scaling_table(const std::vector<ClusterStep>& steps, const std::string& step, bool weak)
{
    using Align = text::Table::Align;
    std::vector<text::Table::Column> columns{{"nodes", Align::right},
                                             {weak ? "rows" : "rows a node", Align::right},
                                             {"received", Align::right},
                                             {"messages", Align::right},
                                             {step, Align::right}};
    if (!weak) {
        columns.push_back({"speed-up", Align::right});
    }
    columns.push_back({"efficiency", Align::right});
    columns.push_back({"limited by", Align::left});
    text::Table table(std::move(columns));
    const double one = steps.front().seconds;
    for (const ClusterStep& s : steps) {
        const double faster = s.seconds > 0 ? one / s.seconds : 0;
        const double efficiency = weak ? faster : faster * steps.front().nodes / s.nodes;
        std::vector<std::string> cells{fmt::format("{}", s.nodes), counted(weak ? s.rows : s.rows / s.nodes),
                                       counted(s.ghosts), counted(s.messages), text::seconds(s.seconds)};
        if (!weak) {
            cells.push_back(fmt::format("{:.2f}", faster));
        }
        cells.push_back(text::percent(efficiency));
        cells.push_back(s.limit);
        table.add(std::move(cells));
    }
    return table.to_text(2);
}

}  // namespace

std::string cluster_text(const ClusterPlan& cluster)
{
    if (cluster.nodes == 0) {
        return "";
    }
    const Network& network = cluster.network;
    const ClusterStep& planned = cluster.planned;
    const bool solves = cluster.step != "product";
    std::string out =
        text::wrapped("Cluster       ",
                      fmt::format("{} {}, each as planned above; {} adapter{} a node of {:g} GB/s, {:g} us a message",
                                  cluster.nodes, cluster.nodes == 1 ? "node" : "nodes", network.adapters,
                                  network.adapters == 1 ? "" : "s", network.bandwidth_gbs, network.latency_us));
    out += text::wrapped("  matrix      ", fmt::format("{} x {}, {} nonzeros; a node has about {} rows",
                                                       counted(cluster.rows), counted(cluster.cols),
                                                       counted(cluster.nnz), counted(cluster.rows / cluster.nodes)));
    out += text::wrapped(
        "  exchange    ",
        fmt::format("at most {} entries of x to a node for a product, in {} message{}: {}", counted(planned.ghosts),
                    counted(planned.messages), std::llround(planned.messages) == 1 ? "" : "s", cluster.counted));
    if (solves) {
        out += text::wrapped("  iteration   ",
                             fmt::format("{:.3g} products, {:.3g} sums over all nodes{}, {:.4g} bytes "
                                         "a row of vectors and preconditioner",
                                         cluster.products, cluster.sums, cluster.sums_beside > 0 ? " beside them" : "",
                                         cluster.vector_bytes));
    }
    if (!(planned.seconds > 0)) {
        return out + text::wrapped("  predicted   ", "nothing: the bandwidth of the nodes' devices is not known");
    }
    out += text::wrapped(
        "  predicted   ",
        fmt::format("{} {} {}: bytes {}, exchange {}, latency {}, launches {}; limited by {}",
                    text::seconds(planned.seconds), solves ? "an" : "a", cluster.step,
                    text::seconds(planned.bytes_seconds), text::seconds(planned.exchange_seconds),
                    text::seconds(planned.latency_seconds), text::seconds(planned.launch_seconds), planned.limit));
    const std::string step = solves ? "an iteration" : "a product";
    out += "  strong scaling: this matrix on other numbers of nodes\n";
    out += scaling_table(cluster.strong, step, false);
    out += "  weak scaling: as many rows on each node as on one of these\n";
    out += scaling_table(cluster.weak, step, true);
    return out;
}

}  // namespace rmsp::plan
