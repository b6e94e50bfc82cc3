#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rmsp/runtime.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/options.hpp"
#include "apps/mspmv/print.hpp"

namespace rmsp::mspmv {
namespace {

struct TopoArguments {
    std::string topology;
    std::string machine;
    std::string devices;
    bool toml = false;
    bool json = false;
};

std::string json_of(const Topology& topology, const std::vector<DeviceInfo>& devices, const std::string& transport)
{
    using Json = nlohmann::ordered_json;
    Json nodes = Json::array();
    for (const NumaNode& node : topology.nodes) {
        nodes.push_back({{"os_index", node.os_index},
                         {"memory_bytes", node.memory_bytes},
                         {"cores", node.cores},
                         {"pus", node.pus}});
    }
    Json gpus = Json::array();
    for (const GpuDescription& gpu : topology.gpus) {
        gpus.push_back({{"index", gpu.index},
                        {"name", gpu.name},
                        {"pci", gpu.pci_bus_id},
                        {"node", gpu.numa_node},
                        {"node_source", gpu.numa_source},
                        {"memory_gbs", gpu.memory_gbs}});
    }
    Json placed = Json::array();
    for (const DeviceInfo& device : devices) {
        placed.push_back({{"kind", to_string(device.kind)},
                          {"index", device.index},
                          {"name", device.name},
                          {"node", device.placement.node},
                          {"cpus", device.placement.cpus},
                          {"threads", device.placement.threads},
                          {"placement", device.placement.reason}});
    }
    Json whole = {{"schema", "rmsp-topology-1"}, {"name", topology.name}, {"source", topology.source},
                  {"live", topology.live},       {"nodes", nodes},        {"gpus", gpus},
                  {"devices", placed},           {"transport", transport}};
    if (const Network& network = topology.network; network.adapters > 0) {
        whole["network"] = {{"bandwidth_gbs", network.bandwidth_gbs},
                            {"adapters", network.adapters},
                            {"latency_us", network.latency_us}};
    }
    // Names need not be UTF-8; JSON must be.
    return whole.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

int show(const TopoArguments& options)
{
    if (!options.topology.empty() && !options.machine.empty()) {
        throw Error(ErrorCode::usage,
                    fmt::format("--topology {} and --machine {} are two machines", options.topology, options.machine));
    }
    const std::string file = options.machine.empty() ? options.topology : machine_file(options.machine);
    if (options.toml) {
        print((file.empty() ? Topology::detect() : Topology::load(file)).to_toml());
        return 0;
    }
    RuntimeOptions runtime_options;
    runtime_options.cache = "auto";
    runtime_options = RuntimeOptions::from_environment(runtime_options);
    runtime_options.topology_file = file;
    if (!options.devices.empty()) {
        runtime_options.devices = options.devices;
    }
    const Runtime runtime(runtime_options);
    std::vector<Placement> placements;
    for (const DeviceInfo& device : runtime.devices()) {
        placements.push_back(device.placement);
    }
    if (options.json) {
        print(json_of(runtime.topology(), runtime.devices(), runtime.transport()));
        return 0;
    }
    print_fitted(fmt::format("{}\nTransport: {}\n", describe(runtime.topology(), placements), runtime.transport()));
    return 0;
}

}  // namespace

void add_topo(CLI::App& app, Action& action)
{
    auto options = std::make_shared<TopoArguments>();
    CLI::App* command =
        app.add_subcommand("topo", "Show the NUMA nodes, the GPUs, and where each device's thread is placed and why");
    add_text(*command, "--topology", options->topology, "FILE",
             "show the machine that this file describes (hwloc XML or TOML)");
    add_text(*command, "--machine", options->machine, "NAME", "show this one of mspmv machines");
    add_text(*command, "--devices", options->devices, "LIST",
             "place these: auto, CUDA ordinals (0,1), host devices (host:4); RMSP_DEVICES");
    command->add_flag("--toml", options->toml,
                      "print the TOML description instead, to be edited or planned for elsewhere");
    command->add_flag("--json", options->json, "print nodes, GPUs and placements as JSON instead");
    command->footer(
        "Examples:\n"
        "  mspmv topo\n"
        "  mspmv topo --devices host:4\n"
        "  mspmv topo --toml > node.toml\n"
        "  mspmv topo --topology node.toml\n"
        "  mspmv topo --machine dgx-h200");
    command->callback([&action, options] { action = [options] { return show(*options); }; });
}

}  // namespace rmsp::mspmv
