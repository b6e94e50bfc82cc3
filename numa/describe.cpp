#include <algorithm>

#include <fmt/format.h>

#include <rmsp/topology.hpp>

#include "numa/cores.hpp"

namespace rmsp {
namespace {

using Row = std::vector<std::string>;

// Columns as wide as their widest cell, two spaces apart; the last one is not padded.
std::string table(const std::vector<Row>& rows)
{
    std::vector<std::size_t> widths(rows.front().size(), 0);
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], row[i].size());
        }
    }
    std::string out;
    for (const Row& row : rows) {
        std::string line = " ";
        for (std::size_t i = 0; i < row.size(); ++i) {
            line += fmt::format(" {:<{}} ", row[i], widths[i]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + '\n';
    }
    return out;
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string node_text(int node) { return node < 0 ? "?" : fmt::format("{}", node); }

}  // namespace

std::string describe(const Topology& topology, const std::vector<Placement>& placements)
{
    std::string out = fmt::format("Machine: {} ({})\n", topology.name.empty() ? "unnamed" : topology.name,
                                  topology.source.empty() ? "memory" : topology.source);
    if (!topology.live) {
        out += "Not this machine: nothing is bound to its processors.\n";
    }

    out += "\nNUMA nodes\n";
    std::vector<Row> rows{{"node", "os", "cores", "threads", "memory", "gpus", "hardware threads"}};
    for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
        const NumaNode& node = topology.nodes[i];
        std::vector<int> gpus;
        for (const GpuDescription& gpu : topology.gpus) {
            if (gpu.numa_node == static_cast<int>(i)) {
                gpus.push_back(gpu.index);
            }
        }
        const std::string memory =
            node.memory_bytes == 0
                ? "-"
                : fmt::format("{:.1f} GiB", static_cast<double>(node.memory_bytes) / (1024.0 * 1024.0 * 1024.0));
        rows.push_back({fmt::format("{}", i), fmt::format("{}", node.os_index), fmt::format("{}", node.cores.size()),
                        fmt::format("{}", node.pus.size()), memory, numa::format_ranges(gpus),
                        numa::format_ranges(node.pus)});
    }
    out += table(rows);

    if (topology.gpus.empty()) {
        out += "\nNo GPUs\n";
    } else {
        out += "\nGPUs\n";
        rows = {{"gpu", "pci", "node", "name", "node known from"}};
        for (const GpuDescription& gpu : topology.gpus) {
            rows.push_back({fmt::format("{}", gpu.index), or_dash(gpu.pci_bus_id), node_text(gpu.numa_node),
                            or_dash(gpu.name), or_dash(gpu.numa_source)});
        }
        out += table(rows);
    }

    if (const Network& network = topology.network; network.adapters > 0) {
        out += fmt::format("\nNetwork: {} adapter{} of {} GB/s, {} us a message\n", network.adapters,
                           network.adapters == 1 ? "" : "s", network.bandwidth_gbs, network.latency_us);
    }

    if (!placements.empty()) {
        out += "\nPlacement\n";
        rows = {{"device", "node", "first", "hardware threads", "reason"}};
        for (const Placement& placement : placements) {
            rows.push_back({fmt::format("{}", placement.device), node_text(placement.node),
                            placement.threads.empty() ? "-" : fmt::format("{}", placement.threads.front()),
                            placement.cpus.empty() ? "not bound" : numa::format_ranges(placement.cpus),
                            placement.reason});
        }
        out += table(rows);
    }
    return out;
}

}  // namespace rmsp
