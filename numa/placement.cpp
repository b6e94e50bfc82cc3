#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/topology.hpp>

#include "numa/cores.hpp"

namespace rmsp {
namespace {

constexpr const char* binding_off = "binding is off";

struct Core {
    int node = 0;
    std::vector<int> pus;
};

std::vector<Core> cores_of(const Topology& topology, int node)
{
    std::vector<Core> result;
    for (std::vector<int>& pus : numa::pus_by_core(topology.nodes[static_cast<std::size_t>(node)])) {
        result.push_back({node, std::move(pus)});
    }
    return result;
}

std::vector<Core> all_cores(const Topology& topology)
{
    std::vector<Core> result;
    for (std::size_t node = 0; node < topology.nodes.size(); ++node) {
        for (Core& core : cores_of(topology, static_cast<int>(node))) {
            result.push_back(std::move(core));
        }
    }
    return result;
}

// The cores of sharer k of n: whole cores, divided evenly; sharers that outnumber the cores get one each and share it.
std::vector<Core> even_share(const std::vector<Core>& cores, std::size_t k, std::size_t n)
{
    const std::size_t begin = k * cores.size() / n;
    const std::size_t end = std::max(begin + 1, (k + 1) * cores.size() / n);
    return {cores.begin() + static_cast<std::ptrdiff_t>(begin), cores.begin() + static_cast<std::ptrdiff_t>(end)};
}

std::vector<int> every_pu(const std::vector<Core>& cores)
{
    std::vector<int> result;
    for (const Core& core : cores) {
        result.insert(result.end(), core.pus.begin(), core.pus.end());
    }
    return result;
}

std::string count_of(std::size_t n, std::string_view what)
{
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

// The node that a GPU is given, and why.
struct Location {
    int node = -1;
    std::string reason;
};

std::vector<Location> locate(const Topology& topology, const std::vector<GpuDescription>& gpus)
{
    std::vector<int> candidates;
    for (std::size_t node = 0; node < topology.nodes.size(); ++node) {
        if (!topology.nodes[node].cores.empty()) {
            candidates.push_back(static_cast<int>(node));
        }
    }
    const auto is_unknown = [](const GpuDescription& gpu) { return gpu.numa_node < 0; };
    const auto unknown = static_cast<std::size_t>(std::count_if(gpus.begin(), gpus.end(), is_unknown));
    std::size_t seen = 0;
    std::vector<Location> result;
    for (const GpuDescription& gpu : gpus) {
        if (!is_unknown(gpu)) {
            if (static_cast<std::size_t>(gpu.numa_node) >= topology.nodes.size()) {
                throw Error(ErrorCode::usage, fmt::format("GPU {} is on NUMA node {} of a machine with {}", gpu.index,
                                                          gpu.numa_node, topology.nodes.size()));
            }
            result.push_back(
                {gpu.numa_node, fmt::format("near its GPU on node {} ({})", gpu.numa_node, gpu.numa_source)});
        } else if (candidates.empty()) {
            result.push_back({-1, fmt::format("node unknown ({})", gpu.numa_source)});
        } else {
            const int node = candidates[seen++ * candidates.size() / unknown];
            result.push_back({node, fmt::format("node unknown ({}), so {} spread evenly over {}", gpu.numa_source,
                                                count_of(unknown, "GPU"), count_of(candidates.size(), "node"))});
        }
    }
    return result;
}

// One thread for each core first, then the cores' other hardware threads, then around again.
std::vector<int> pick_threads(const std::vector<Core>& cores, std::size_t count)
{
    const std::size_t available = every_pu(cores).size();
    std::vector<int> order;
    for (std::size_t level = 0; order.size() < available; ++level) {
        for (const Core& core : cores) {
            if (level < core.pus.size()) {
                order.push_back(core.pus[level]);
            }
        }
    }
    std::vector<int> result(count);
    for (std::size_t i = 0; i < count; ++i) {
        result[i] = order[i % order.size()];
    }
    return result;
}

std::string nodes_text(const std::vector<Core>& cores)
{
    std::vector<int> nodes;
    for (const Core& core : cores) {
        if (nodes.empty() || nodes.back() != core.node) {
            nodes.push_back(core.node);
        }
    }
    return fmt::format("{} {}", nodes.size() == 1 ? "node" : "nodes", numa::format_ranges(nodes));
}

}  // namespace

std::vector<Placement> place_gpus(const Topology& topology, const std::vector<GpuDescription>& gpus, BindPolicy policy)
{
    std::vector<Placement> placements(gpus.size());
    if (policy == BindPolicy::none) {
        for (std::size_t i = 0; i < gpus.size(); ++i) {
            placements[i] = {static_cast<int>(i), gpus[i].numa_node, {}, {}, binding_off};
        }
        return placements;
    }
    const std::vector<Location> located = locate(topology, gpus);
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        Placement& placement = placements[i];
        placement.device = static_cast<int>(i);
        placement.node = located[i].node;
        placement.reason = located[i].reason;
        placement.strict = policy == BindPolicy::strict;
        std::vector<Core> cores = placement.node < 0 ? std::vector<Core>{} : cores_of(topology, placement.node);
        if (cores.empty()) {
            const std::vector<Core> fallback = all_cores(topology);
            if (policy == BindPolicy::strict) {
                throw Error(ErrorCode::usage,
                            fmt::format("strict binding: NUMA node {} of GPU {} has no core in the process's cpuset, "
                                        "which has {} on the machine's {}",
                                        placement.node, gpus[i].index, count_of(fallback.size(), "core"),
                                        count_of(topology.nodes.size(), "node")));
            }
            placement.cpus = every_pu(fallback);
            placement.reason += fallback.empty()
                                    ? "; not bound, because no core is usable"
                                    : fmt::format("; that node has no core in the process's cpuset, so any of its {}",
                                                  count_of(fallback.size(), "core"));
        } else {
            std::size_t sharers = 0;
            std::size_t rank = 0;
            for (std::size_t j = 0; j < gpus.size(); ++j) {
                if (located[j].node == placement.node) {
                    sharers += 1;
                    rank += j < i ? 1 : 0;
                }
            }
            const std::vector<Core> share = even_share(cores, rank, sharers);
            placement.cpus = every_pu(share);
            placement.reason +=
                sharers > cores.size()
                    ? fmt::format("; {} share {}", count_of(sharers, "GPU"), count_of(cores.size(), "core"))
                    : fmt::format("; {} of {}", share.size(), count_of(cores.size(), "core"));
        }
        if (!placement.cpus.empty()) {
            placement.threads = {placement.cpus.front()};
        }
    }
    return placements;
}

std::vector<Placement> place_host_devices(const Topology& topology, int count, int threads_each, BindPolicy policy)
{
    if (count < 1 || threads_each < 0) {
        throw Error(ErrorCode::usage,
                    fmt::format("{} host devices of {} threads each make no sense", count, threads_each));
    }
    const auto devices = static_cast<std::size_t>(count);
    std::vector<Placement> placements(devices);
    const std::vector<Core> cores = all_cores(topology);
    const std::size_t wanted = devices * static_cast<std::size_t>(std::max(threads_each, 1));
    if (policy == BindPolicy::strict && wanted > cores.size()) {
        throw Error(
            ErrorCode::usage,
            fmt::format("strict binding: {} of {} need {} cores, and the process's cpuset has {}",
                        count_of(devices, "host device"),
                        count_of(static_cast<std::size_t>(std::max(threads_each, 1)), "thread"), wanted, cores.size()));
    }
    for (std::size_t i = 0; i < devices; ++i) {
        Placement& placement = placements[i];
        placement.device = static_cast<int>(i);
        placement.strict = policy == BindPolicy::strict;
        if (policy == BindPolicy::none || cores.empty()) {
            placement.reason = policy == BindPolicy::none ? binding_off : "not bound, because no core is usable";
            continue;
        }
        std::vector<Core> share = even_share(cores, i, devices);
        const std::size_t threads = threads_each == 0 ? share.size() : static_cast<std::size_t>(threads_each);
        if (threads < share.size()) {
            share.resize(threads);
        }
        placement.node = share.front().node;
        placement.cpus = every_pu(share);
        placement.threads = pick_threads(share, threads);
        placement.reason =
            fmt::format("{} of {} on {}", share.size(), count_of(cores.size(), "core"), nodes_text(share));
        if (devices > cores.size()) {
            placement.reason += fmt::format("; {} share them", count_of(devices, "device"));
        }
        if (threads > share.size()) {
            placement.reason += fmt::format("; {} on {}", count_of(threads, "thread"),
                                            count_of(placement.cpus.size(), "hardware thread"));
        }
    }
    return placements;
}

}  // namespace rmsp
