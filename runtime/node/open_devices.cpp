#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/enumerator.hpp"
#include "core/log.hpp"
#include "core/process.hpp"
#include "runtime/engine/cuda/cuda_backend.hpp"
#include "runtime/engine/lost_gpus.hpp"
#include "runtime/engine/make_device.hpp"
#include "runtime/node/node.hpp"

/// From RuntimeOptions::devices to placed workers with open devices.
namespace rmsp {
namespace {

/// What reading gets of the bandwidth in the data sheet of a GPU (H200: 4553 of 4800 GB/s).
constexpr double read_share = 0.95;

/// What `devices` asks for.
struct DeviceChoice {
    DeviceKind kind = DeviceKind::host;
    std::vector<int> ordinals;  // GPUs
    int host_devices = 0;
    int threads_each = 0;  // 0: the cores divided evenly
};

[[noreturn]] void throw_bad_devices(const std::string& text, const std::string& why)
{
    throw Error(
        ErrorCode::usage,
        fmt::format(
            "devices \"{}\": {}; write \"auto\", GPU numbers such as \"0,1\", \"shared:0,0\" where GPUs are to stand "
            "for several devices, or \"host:4\" or \"host:4x2\"",
            text, why));
}

int parse_number(const std::string& text, std::string_view word, int least)
{
    int value = 0;
    const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (status != std::errc{} || end != word.data() + word.size() || value < least) {
        throw_bad_devices(text, fmt::format("\"{}\" is not a number of at least {}", word, least));
    }
    return value;
}

DeviceChoice parse_devices(const std::string& text, const Topology& topology, std::size_t gpus)
{
    constexpr std::string_view shared = "shared:";
    std::string_view view = text;
    const bool shares = view.starts_with(shared);
    DeviceChoice choice;
    const auto add_gpu = [&](int ordinal) {
        if (ordinal >= static_cast<int>(gpus)) {
            throw Error(ErrorCode::device,
                        fmt::format("devices \"{}\": there is no GPU {}; this machine offers {} GPU{}", text, ordinal,
                                    gpus, gpus == 1 ? "" : "s"));
        }
        if (engine::is_lost_gpu(ordinal)) {
            throw Error(ErrorCode::device,
                        fmt::format("devices \"{}\": GPU {} is lost to this process", text, ordinal));
        }
        if (!shares && std::find(choice.ordinals.begin(), choice.ordinals.end(), ordinal) != choice.ordinals.end()) {
            throw_bad_devices(text, fmt::format("GPU {} is named twice", ordinal));
        }
        choice.ordinals.push_back(ordinal);
    };
    if (text == "auto") {
        if (gpus > 0) {
            choice.kind = DeviceKind::cuda;
            for (int i = 0; i < static_cast<int>(gpus); ++i) {
                if (engine::is_lost_gpu(i)) {
                    core::log_warning(fmt::format("GPU {} is lost to this process and left out", i));
                } else {
                    add_gpu(i);
                }
            }
            if (choice.ordinals.empty()) {
                throw Error(ErrorCode::device, "every GPU is lost to this process; a new process may have them again");
            }
        } else {
            // Two at least, so that partition and merge are real; one for each NUMA node where there are more.
            choice.host_devices = std::max(2, static_cast<int>(topology.nodes.size()));
        }
        return choice;
    }
    if (view.starts_with("host:")) {
        const std::string_view counts = view.substr(5);
        const auto cross = counts.find('x');
        choice.host_devices = parse_number(text, counts.substr(0, cross), 1);
        if (cross != std::string_view::npos) {
            choice.threads_each = parse_number(text, counts.substr(cross + 1), 1);
        }
        constexpr int most_devices = 1024;
        constexpr int most_threads = 4096;
        if (choice.host_devices > most_devices ||
            std::int64_t{choice.host_devices} * std::max(1, choice.threads_each) > most_threads) {
            throw_bad_devices(
                text, fmt::format("more than {} devices, or {} threads of all of them", most_devices, most_threads));
        }
        return choice;
    }
    choice.kind = DeviceKind::cuda;
    view.remove_prefix(shares ? shared.size() : 0);
    std::size_t begin = 0;
    while (begin <= view.size()) {
        const std::size_t end = std::min(view.find(',', begin), view.size());
        add_gpu(parse_number(text, view.substr(begin, end - begin), 0));
        begin = end + 1;
    }
    return choice;
}

/// GPUs as CUDA counts them, with the NUMA nodes that the platform gives for their PCI addresses.
std::vector<GpuDescription> locate(std::vector<GpuDescription> gpus, const Topology& topology)
{
    for (auto& gpu : gpus) {
        const auto known = std::find_if(topology.gpus.begin(), topology.gpus.end(),
                                        [&](const auto& other) { return other.pci_bus_id == gpu.pci_bus_id; });
        if (known != topology.gpus.end()) {
            gpu.numa_node = known->numa_node;
            gpu.numa_source = known->numa_source;
        } else {
            gpu.numa_source = fmt::format("no PCI device {} in the topology", gpu.pci_bus_id);
        }
    }
    return gpus;
}

int core_count(const Topology& topology)
{
    std::size_t cores = 0;
    for (const NumaNode& node : topology.nodes) {
        cores += node.cores.size();
    }
    return static_cast<int>(cores);
}

/// Whether a host device's threads are on several NUMA nodes.
bool spans_nodes(const Topology& topology, const Placement& placement)
{
    const auto on = [&](const NumaNode& node) {
        return std::any_of(placement.threads.begin(), placement.threads.end(),
                           [&](int pu) { return std::find(node.pus.begin(), node.pus.end(), pu) != node.pus.end(); });
    };
    return std::count_if(topology.nodes.begin(), topology.nodes.end(), on) > 1;
}

}  // namespace

namespace node {

detail::OpenRuntime open_devices(const RuntimeOptions& options)
{
    core::require_enumerator("RuntimeOptions::bind", options.bind, BindPolicy::strict);
    core::require_own_process();
    detail::OpenRuntime state(new RuntimeState);
    state->process = core::own_process();
    state->options = options;
    state->cache = engine::Cache(options.cache);
    const bool live = options.topology_file.empty();
    state->topology = live ? Topology::detect() : Topology::load(options.topology_file);
    const Topology& topology = state->topology;

    const bool may_use_gpus = !std::string_view(options.devices).starts_with("host:");
    auto gpus =
        live ? (may_use_gpus ? locate(engine::cuda_gpus(), topology) : std::vector<GpuDescription>{}) : topology.gpus;
    const DeviceChoice choice = parse_devices(options.devices, topology, gpus.size());
    std::vector<Placement> placements;
    if (choice.kind == DeviceKind::cuda) {
        std::vector<GpuDescription> chosen;
        for (const int ordinal : choice.ordinals) {
            chosen.push_back(gpus[static_cast<std::size_t>(ordinal)]);
        }
        // Ranks go by node, which is the order of the two-level split.
        const auto placed = place_gpus(topology, chosen, options.bind);
        std::vector<std::size_t> order(chosen.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return placed[a].node < placed[b].node; });
        gpus.clear();
        for (const std::size_t i : order) {
            gpus.push_back(chosen[i]);
            placements.push_back(placed[i]);
            placements.back().device = static_cast<int>(placements.size()) - 1;
        }
    } else {
        placements = place_host_devices(topology, choice.host_devices, choice.threads_each, options.bind);
    }
    // hwloc's environment can put another machine in this one's place, whose processors are not these.
    const bool imagined = live && !topology.live;
    for (Placement& placement : placements) {
        if (imagined && options.bind == BindPolicy::strict) {
            throw Error(ErrorCode::usage,
                        "strict binding: hwloc reports another machine than this one, as HWLOC_XMLFILE "
                        "or HWLOC_SYNTHETIC tells it to, to whose processors no thread can be bound");
        }
        if (imagined && !placement.cpus.empty()) {
            placement.cpus.clear();
            placement.threads.clear();
            placement.reason += "; not bound, because that is another machine (HWLOC_XMLFILE or HWLOC_SYNTHETIC)";
        }
    }
    const std::size_t count = placements.size();
    if (!options.weights.empty() && options.weights.size() != count) {
        throw Error(ErrorCode::usage,
                    fmt::format("runtime.weights: {} weights for {} devices", options.weights.size(), count));
    }
    for (const double weight : options.weights) {
        if (!(weight > 0) || std::isinf(weight)) {
            throw Error(ErrorCode::usage, fmt::format("runtime.weights: {} is not a number above 0", weight));
        }
    }
    if (options.memory_limit < 0) {
        throw Error(ErrorCode::usage, fmt::format("runtime.memory_limit: {} bytes is below 0", options.memory_limit));
    }
    if (!(options.limit_gbs >= 0) || std::isinf(options.limit_gbs)) {
        throw Error(ErrorCode::usage,
                    fmt::format("runtime.limit_gbs: {} is not a number of at least 0", options.limit_gbs));
    }

    std::vector<int> sharers(count, 1);
    for (std::size_t i = 0; i < count; ++i) {
        DeviceInfo info;
        info.kind = choice.kind;
        info.placement = placements[i];
        info.limit_gbs = options.limit_gbs;
        const int node = placements[i].node;
        if (node >= 0 && !imagined) {
            info.numa_node = topology.nodes[static_cast<std::size_t>(node)].os_index;
        }
        if (choice.kind == DeviceKind::host && spans_nodes(topology, placements[i])) {
            info.numa_node = -1;  // each thread's pages come from its own
        }
        if (choice.kind == DeviceKind::cuda) {
            info.index = gpus[i].index;
            info.name = gpus[i].name.empty() ? "GPU" : gpus[i].name;
            sharers[i] = static_cast<int>(std::count(choice.ordinals.begin(), choice.ordinals.end(), info.index));
            if (sharers[i] > 1) {
                info.name += fmt::format(" (shared by {})", sharers[i]);
            }
            info.pci_bus_id = gpus[i].pci_bus_id;
            if (!live && !(info.limit_gbs > 0)) {
                info.limit_gbs = read_share * gpus[i].memory_gbs / sharers[i];
            }
            if (gpus[i].numa_node < 0) {
                state->notes.push_back(fmt::format("cuda:{}: {}", info.index, placements[i].reason));
            }
        } else {
            info.index = static_cast<int>(i);
            const auto placed = static_cast<int>(placements[i].threads.size());
            // Not bound, so not placed on cores either.
            const int cores = imagined ? static_cast<int>(std::thread::hardware_concurrency()) : core_count(topology);
            const int even = cores / static_cast<int>(count);
            info.compute_units = std::max(1, choice.threads_each > 0 ? choice.threads_each
                                             : placed > 0            ? placed
                                                                     : even);
            info.name = fmt::format("({} thread{})", info.compute_units, info.compute_units == 1 ? "" : "s");
        }
        state->infos.push_back(std::move(info));
    }
    if (!live) {
        state->connection.name = "unknown";
        state->connection.reason = "a described machine";
        return state;
    }

    for (std::size_t i = 0; i < count; ++i) {
        state->workers.push_back(std::make_unique<engine::Worker>(
            static_cast<int>(i), placements[i],
            [info = state->infos[i], n = sharers[i]] { return engine::make_device(info, n); }));
    }
    for (std::size_t i = 0; i < count; ++i) {
        state->workers[i]->wait_until_open();
        state->infos[i] = state->workers[i]->device().info();
    }
    std::vector<engine::LedgerDevice> devices;
    for (const auto& worker : state->workers) {
        devices.push_back(worker->device().for_ledger());
    }
    state->memory = std::make_unique<engine::MemoryLedger>(std::move(devices), options.memory_limit,
                                                           [held = state.get()] { held->catch_up(); });
    for (std::size_t i = 0; i < count; ++i) {
        state->workers[i]->device().count_in(*state->memory, static_cast<int>(i));
    }
    return state;
}

RuntimeOptions without_lost(const RuntimeState& runtime)
{
    RuntimeOptions options = runtime.options;
    options.weights.clear();
    std::vector<std::string> gpus;
    int left = 0;
    int threads = 1;
    for (std::size_t i = 0; i < runtime.workers.size(); ++i) {
        if (runtime.workers[i]->device().lost()) {
            continue;
        }
        ++left;
        gpus.push_back(std::to_string(runtime.infos[i].index));
        threads = runtime.infos[i].compute_units;
        if (!runtime.options.weights.empty()) {
            options.weights.push_back(runtime.options.weights[i]);
        }
    }
    if (left == 0) {
        throw Error(ErrorCode::device, "every device of this runtime is lost");
    }
    options.devices =
        runtime.shared_memory()
            ? fmt::format("host:{}x{}", left, threads)
            : fmt::format("{}{}", options.devices.starts_with("shared:") ? "shared:" : "", fmt::join(gpus, ","));
    return options;
}

}  // namespace node

}  // namespace rmsp
