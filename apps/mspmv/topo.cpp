#include <memory>
#include <string>

#include <fmt/format.h>

#include <rmsp/runtime.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/options.hpp"
#include "apps/mspmv/output.hpp"

namespace rmsp::mspmv {
namespace {

struct Options {
    std::string topology;
    std::string machine;
    std::string devices;
    bool toml = false;
};

int show(const Options& options)
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
    print(fmt::format("{}\nTransport: {}\n", describe(runtime.topology(), placements), runtime.transport()));
    return 0;
}

}  // namespace

void add_topo(CLI::App& app, Action& action)
{
    auto options = std::make_shared<Options>();
    CLI::App* command =
        app.add_subcommand("topo", "Show the NUMA nodes, the GPUs, and where each device's thread is placed and why");
    add_text(*command, "--topology", options->topology, "FILE",
             "show the machine that this file describes (hwloc XML or TOML)");
    add_text(*command, "--machine", options->machine, "NAME", "show this one of mspmv machines");
    add_text(*command, "--devices", options->devices, "LIST",
             "place these: auto, CUDA ordinals (0,1), host devices (host:4); RMSP_DEVICES");
    command->add_flag("--toml", options->toml,
                      "print the TOML description instead, to be edited or planned for elsewhere");
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
