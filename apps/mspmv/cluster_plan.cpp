#include "apps/mspmv/cluster_plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace rmsp::mspmv {
namespace {

/// What is known of no machine yet: a program of several nodes has not run on GPUs.
struct Assumed {
    double launch_seconds = 10e-6;  ///< until devices have heard of what the host did, or the host of them
    double staging_gbs = 25;        ///< of entries between a device and host memory
};
constexpr Assumed assumed{};

/// One node's product, as its plan has it, and what of it changes with the rows.
struct NodeProduct {
    double kernel = 0;    ///< seconds of the slowest device
    double beside = 0;    ///< of the exchange inside the node, what is not hidden behind it
    double exchange = 0;  ///< the whole of that exchange
    double gbs = 0;       ///< of all devices

    explicit NodeProduct(const Plan& plan)
    {
        for (const ShardPlan& shard : plan.shards) {
            if (shard.part.nnz() == 0) {
                continue;
            }
            gbs += shard.limit_gbs;
            const bool weighed = !shard.candidates.empty() && shard.candidates.front().kernel == shard.kernel;
            const double own = weighed ? shard.candidates.front().predicted_seconds
                                       : std::max(0.0, shard.predicted_seconds - shard.exchange_seconds);
            if (shard.predicted_seconds > kernel + beside) {
                kernel = std::min(own, shard.predicted_seconds);
                beside = shard.predicted_seconds - kernel;
                exchange = shard.exchange_seconds;
            }
        }
    }
    /// Beyond the kernel, where that has so many times the rows.
    double waits(double ratio) const { return std::max(beside, exchange - kernel * ratio); }
};

/// \param own_rows  of the node, which has `ratio` times the rows that are planned
ClusterStep step_of(const Plan& plan, const NodeProduct& node, const NodeExchange& between, int nodes, double own_rows,
                    double ratio)
{
    const ClusterPlan& cluster = plan.cluster;
    const Network& network = cluster.network;
    ClusterStep step;
    step.nodes = nodes;
    step.rows = own_rows * nodes;
    step.ghosts = between.ghosts;
    step.messages = between.messages;
    if (!(node.kernel > 0)) {
        return step;
    }
    const double value_bytes = plan.precision == "double" ? sizeof(double) : sizeof(float);
    const double bytes = between.ghosts * value_bytes;
    const double multiplied = node.kernel * ratio;
    const double inside = node.waits(ratio);
    // One node has no network.
    const double moved =
        bytes > 0 ? bytes / (network.bandwidth_gbs * network.adapters * 1e9) + 2 * bytes / (assumed.staging_gbs * 1e9)
                  : 0;
    const double messages = between.messages * network.latency_us * 1e-6;
    const double handed_over = between.ghosts > 0 ? 2 * assumed.launch_seconds : 0;
    const double with_ghosts = multiplied * between.outside;
    // Own columns are multiplied meanwhile, the ghosts' afterwards.
    const double product = std::max(multiplied - with_ghosts + inside, moved + messages + handed_over) + with_ghosts;
    const double vectors = node.gbs > 0 ? cluster.vector_bytes * own_rows / (node.gbs * 1e9) : 0;
    const double sums = nodes > 1 ? cluster.sums : 0;
    const double beside = nodes > 1 ? cluster.sums_beside : 0;
    const double sum_latency = network.latency_us * 1e-6 * std::ceil(std::log2(nodes));
    step.bytes_seconds = cluster.products * multiplied + vectors;
    step.exchange_seconds = cluster.products * moved;
    step.latency_seconds = cluster.products * messages + sums * sum_latency;
    step.launch_seconds = cluster.products * std::max(inside, handed_over) + sums * assumed.launch_seconds;
    const double sum_seconds = sum_latency + assumed.launch_seconds;
    step.seconds = cluster.products * product + vectors + (sums - beside) * sum_seconds +
                   beside * std::max(0.0, sum_seconds - product);
    const std::array<std::pair<double, const char*>, 4> parts{{{step.bytes_seconds, "bytes"},
                                                               {step.exchange_seconds, "exchange"},
                                                               {step.latency_seconds, "latency"},
                                                               {step.launch_seconds, "launches"}}};
    step.limit =
        std::max_element(parts.begin(), parts.end(), [](auto& a, auto& b) { return a.first < b.first; })->second;
    return step;
}

}  // namespace

void predict_cluster(Plan& plan, const ExchangeModel& exchange)
{
    constexpr int most_nodes = 1024;
    ClusterPlan& cluster = plan.cluster;
    const NodeProduct node(plan);
    std::vector<int> counts{cluster.nodes};
    for (int nodes = 1; nodes <= most_nodes; nodes *= 2) {
        if (nodes != cluster.nodes) {
            counts.push_back(nodes);
        }
    }
    std::sort(counts.begin(), counts.end());
    const double planned_rows = cluster.rows / cluster.nodes;
    const auto of_cluster = [&](int nodes, double rows) {
        return step_of(plan, node, nodes > 1 ? exchange(nodes, rows) : NodeExchange{}, nodes, rows / nodes,
                       rows / nodes / planned_rows);
    };
    for (const int nodes : counts) {
        cluster.strong.push_back(of_cluster(nodes, cluster.rows));
        cluster.weak.push_back(nodes == cluster.nodes ? cluster.strong.back()
                                                      : of_cluster(nodes, planned_rows * nodes));
        if (nodes == cluster.nodes) {
            cluster.planned = cluster.strong.back();
        }
    }
}

ClusterStep predict_step(const Plan& plan, const NodeExchange& exchange)
{
    return step_of(plan, NodeProduct(plan), exchange, plan.cluster.nodes, static_cast<double>(plan.rows), 1);
}

}  // namespace rmsp::mspmv
