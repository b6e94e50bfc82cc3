#include "runtime/doctor/known_links.hpp"

#include <algorithm>
#include <map>

#include "runtime/doctor/doctor_cache.hpp"

namespace rmsp::doctor {
namespace {

constexpr double alike = 0.9;  // the least over the most of links that are drawn and listed as one

double entry(const std::vector<std::vector<double>>& table, std::size_t i, std::size_t j)
{
    return i < table.size() && j < table[i].size() ? table[i][j] : 0;
}

/// Of the devices that stand for the GPUs of a description.
std::vector<MachineLink> described_links(const RuntimeState& runtime)
{
    std::vector<MachineLink> links;
    for (MachineLink link : runtime.topology.links) {
        std::vector<int> devices;
        for (std::size_t d = 0; d < runtime.infos.size(); ++d) {
            const bool joined = std::ranges::any_of(link.gpus, [&](int gpu) {
                return runtime.topology.gpus[static_cast<std::size_t>(gpu)].index == runtime.infos[d].index;
            });
            if (joined) {
                devices.push_back(static_cast<int>(d));
            }
        }
        const bool among_gpus = link.nodes.empty();
        const bool among_nodes = link.gpus.empty();
        link.gpus = std::move(devices);
        if (among_nodes || link.gpus.size() >= (among_gpus ? 2U : 1U)) {
            links.push_back(std::move(link));
        }
    }
    return links;
}

}  // namespace

std::vector<MachineLink> measured_links(const DoctorReport& report, const std::vector<int>& nodes)
{
    std::vector<MachineLink> links;
    std::map<int, std::vector<int>> near;
    for (std::size_t d = 0; d < nodes.size(); ++d) {
        near[nodes[d]].push_back(static_cast<int>(d));
    }
    for (const auto& [node, devices] : near) {
        std::vector<MachineLink> of_node;
        for (const int device : devices) {
            const auto d = static_cast<std::size_t>(device);
            const double gbs = d < report.to_device.size() && d < report.from_device.size()
                                   ? std::min(report.to_device[d], report.from_device[d])
                                   : 0;
            if (node < 0 || !(gbs > 0)) {
                continue;
            }
            if (of_node.empty() || std::min(gbs, of_node.back().gbs) < alike * std::max(gbs, of_node.back().gbs)) {
                of_node.push_back({"host link", {device}, {node}, gbs, false, "self test"});
            } else {
                of_node.back().gpus.push_back(device);
                of_node.back().gbs = std::min(of_node.back().gbs, gbs);
            }
        }
        links.insert(links.end(), of_node.begin(), of_node.end());
    }
    std::vector<MachineLink> pairs;
    double most = 0;
    double least = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        for (std::size_t j = i + 1; j < nodes.size(); ++j) {
            const auto best = [&](std::size_t to, std::size_t from) {
                return std::max({entry(report.read_by_kernel, to, from), entry(report.write_by_kernel, to, from),
                                 entry(report.copy_engine, to, from)});
            };
            const double gbs = std::min(best(i, j), best(j, i));
            if (gbs > 0) {
                least = pairs.empty() ? gbs : std::min(least, gbs);
                most = std::max(most, gbs);
                pairs.push_back(
                    {"device link", {static_cast<int>(i), static_cast<int>(j)}, {}, gbs, false, "self test"});
            }
        }
    }
    if (pairs.size() > 1 && pairs.size() == nodes.size() * (nodes.size() - 1) / 2 && least >= alike * most) {
        MachineLink all{"device link", {}, {}, least, false, "self test"};
        for (std::size_t d = 0; d < nodes.size(); ++d) {
            all.gpus.push_back(static_cast<int>(d));
        }
        pairs = {all};
    }
    links.insert(links.end(), pairs.begin(), pairs.end());
    return links;
}

std::vector<MachineLink> known_links(const RuntimeState& runtime)
{
    if (runtime.shared_memory()) {
        return {};
    }
    if (!runtime.options.topology_file.empty()) {
        return described_links(runtime);
    }
    const auto report = load_doctor_report(runtime);
    std::vector<int> nodes;
    for (const DeviceInfo& info : runtime.infos) {
        nodes.push_back(info.placement.node);
    }
    return report ? measured_links(*report, nodes) : std::vector<MachineLink>{};
}

}  // namespace rmsp::doctor
