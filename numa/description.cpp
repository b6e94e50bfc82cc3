#include "numa/description.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rmsp/error.hpp>

#include "core/edit_distance.hpp"
#include "core/toml.hpp"
#include "numa/cores.hpp"
#include "numa/hwloc_topology.hpp"

namespace rmsp {
namespace numa {
namespace {

using Keys = std::initializer_list<std::string_view>;

// Bounds that keep a mistyped description from filling memory; larger than any machine.
constexpr std::int64_t max_pu = (1 << 20) - 1;
constexpr std::int64_t max_cores = 1 << 16;
constexpr std::int64_t max_threads_per_core = 16;
constexpr std::int64_t max_os_node = 4095;
constexpr double max_memory_gib = 1 << 24;
constexpr double max_memory_gbs = 1 << 20;
constexpr std::int64_t max_adapters = 1024;
constexpr double max_latency_us = 1e6;

constexpr double bytes_per_gib = 1024.0 * 1024.0 * 1024.0;

// Lower-case "dddd:bb:dd.f" of a PCI address that may be in upper case or lack its domain; empty if it is none.
std::string normalized_pci_id(std::string_view text)
{
    std::string id(text);
    std::transform(id.begin(), id.end(), id.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (std::count(id.begin(), id.end(), ':') == 1) {
        id.insert(0, "0000:");
    }
    // The domain has four to eight digits.
    const std::size_t domain = id.find(':');
    if (domain == std::string::npos || domain < 4 || domain > 8 || id.size() != domain + 8 || id[domain + 3] != ':' ||
        id[domain + 6] != '.') {
        return "";
    }
    for (std::size_t i = 0; i < id.size(); ++i) {
        const bool separator = i == domain || i == domain + 3 || i == domain + 6;
        if (!separator && std::isxdigit(static_cast<unsigned char>(id[i])) == 0) {
            return "";
        }
    }
    return id;
}

class DescriptionReader {
public:
    explicit DescriptionReader(const std::string& name) : name_(name) {}

    Topology read(const toml::table& root)
    {
        check_keys(root, "the top level", {"name", "hwloc", "node", "gpu", "network", "link"});
        const toml::node* const synthetic = root.get("hwloc");
        const toml::node* const nodes = root.get("node");
        if ((synthetic == nullptr) == (nodes == nullptr)) {
            fail(nodes != nullptr ? *nodes : root, "a description needs either `hwloc` or [[node]] tables");
        }
        Topology topology;
        if (synthetic != nullptr) {
            topology = topology_from_synthetic(text(root, "hwloc", ""), where(*synthetic));
        } else {
            for (const toml::table* node : tables(*nodes, "node")) {
                topology.nodes.push_back(read_node(*node, static_cast<int>(topology.nodes.size())));
            }
        }
        topology.name = text(root, "name", "");
        if (const toml::node* const gpus = root.get("gpu"); gpus != nullptr) {
            for (const toml::table* gpu : tables(*gpus, "gpu")) {
                topology.gpus.push_back(read_gpu(*gpu, static_cast<int>(topology.gpus.size()), topology.nodes.size()));
            }
        }
        if (const toml::node* const links = root.get("link"); links != nullptr) {
            for (const toml::table* link : tables(*links, "link")) {
                topology.links.push_back(read_link(*link, topology));
            }
        }
        if (const toml::node* const network = root.get("network"); network != nullptr) {
            topology.network = read_network(*network);
        }
        return topology;
    }

private:
    std::string where(const toml::node& at) const { return fmt::format("{}:{}", name_, at.source().begin.line); }

    [[noreturn]] void fail(const toml::node& at, const std::string& message) const
    {
        throw Error(ErrorCode::io, fmt::format("{}: {}", where(at), message));
    }

    void check_keys(const toml::table& table, std::string_view place, Keys known) const
    {
        for (const auto& [key, value] : table) {
            const std::string_view name = key.str();
            if (std::find(known.begin(), known.end(), name) == known.end()) {
                const auto* const nearest =
                    std::min_element(known.begin(), known.end(), [&](std::string_view a, std::string_view b) {
                        return core::edit_distance(a, name) < core::edit_distance(b, name);
                    });
                fail(value, fmt::format("unknown key `{}` in {}; did you mean `{}`?", name, place, *nearest));
            }
        }
    }

    std::vector<const toml::table*> tables(const toml::node& node, std::string_view key) const
    {
        std::vector<const toml::table*> result;
        const toml::array* const array = node.as_array();
        if (array == nullptr || array->empty() || !array->is_homogeneous(toml::node_type::table)) {
            fail(node, fmt::format("`{}` must be one or more [[{}]] tables", key, key));
        }
        for (const toml::node& element : *array) {
            result.push_back(element.as_table());
        }
        return result;
    }

    std::string text(const toml::table& table, std::string_view key, const std::string& fallback) const
    {
        const toml::node* const node = table.get(key);
        if (node == nullptr) {
            return fallback;
        }
        const auto value = node->value_exact<std::string>();
        if (!value) {
            fail(*node, fmt::format("`{}` must be a string", key));
        }
        return *value;
    }

    std::int64_t number(const toml::node& node, std::string_view key, std::int64_t least, std::int64_t most) const
    {
        const auto value = node.value_exact<std::int64_t>();
        if (!value || *value < least || *value > most) {
            fail(node, fmt::format("`{}` must be an integer from {} to {}", key, least, most));
        }
        return *value;
    }

    std::optional<std::int64_t> number(const toml::table& table, std::string_view key, std::int64_t least,
                                       std::int64_t most) const
    {
        const toml::node* const node = table.get(key);
        return node == nullptr ? std::nullopt : std::optional(number(*node, key, least, most));
    }

    /// 0 if the table does not have it.
    double real(const toml::table& table, std::string_view key, double most) const
    {
        const toml::node* const node = table.get(key);
        if (node == nullptr) {
            return 0;
        }
        const std::optional<double> value = node->is_number() ? node->value<double>() : std::nullopt;
        if (!value || !(*value >= 0) || *value > most) {
            fail(*node, fmt::format("`{}` must be a number from 0 to {}", key, most));
        }
        return *value;
    }

    NumaNode read_node(const toml::table& table, int position)
    {
        check_keys(table, "[[node]]", {"os_index", "cores", "threads_per_core", "core_pus", "memory_gib"});
        NumaNode node;
        node.os_index = static_cast<int>(number(table, "os_index", 0, max_os_node).value_or(position));
        if (!os_nodes_.insert(node.os_index).second) {
            fail(table, fmt::format("two [[node]] tables have os_index {}", node.os_index));
        }
        node.memory_bytes = std::llround(real(table, "memory_gib", max_memory_gib) * bytes_per_gib);
        const std::optional<std::int64_t> cores = number(table, "cores", 1, max_cores);
        const toml::node* const lists = table.get("core_pus");
        if (cores.has_value() == (lists != nullptr)) {
            fail(table, "a [[node]] needs either `cores` or `core_pus`");
        }
        if (lists != nullptr) {
            if (table.contains("threads_per_core")) {
                fail(*table.get("threads_per_core"), "`threads_per_core` goes with `cores`, not with `core_pus`");
            }
            read_core_pus(*lists, node);
            return node;
        }
        const std::int64_t threads = number(table, "threads_per_core", 1, max_threads_per_core).value_or(1);
        int pu = pus_.empty() ? 0 : *pus_.rbegin() + 1;
        for (std::int64_t core = 0; core < *cores; ++core) {
            node.cores.push_back(pu);
            for (std::int64_t thread = 0; thread < threads; ++thread, ++pu) {
                add_pu(table, node, pu);
            }
        }
        return node;
    }

    void read_core_pus(const toml::node& lists, NumaNode& node)
    {
        const toml::array* const cores = lists.as_array();
        if (cores == nullptr) {
            fail(lists, "`core_pus` must be a list of lists of hardware threads");
        }
        for (const toml::node& core : *cores) {
            const toml::array* const pus = core.as_array();
            if (pus == nullptr || pus->empty()) {
                fail(core, "each core of `core_pus` must be a list of its hardware threads");
            }
            bool first = true;
            for (const toml::node& element : *pus) {
                const int pu = static_cast<int>(number(element, "core_pus", 0, max_pu));
                if (first) {
                    node.cores.push_back(pu);
                }
                add_pu(element, node, pu);
                first = false;
            }
        }
    }

    void add_pu(const toml::node& at, NumaNode& node, int pu)
    {
        if (pu > max_pu || !pus_.insert(pu).second) {
            fail(at, fmt::format("hardware thread {} {}", pu, pu > max_pu ? "is out of range" : "is listed twice"));
        }
        node.pus.push_back(pu);
    }

    GpuDescription read_gpu(const toml::table& table, int position, std::size_t node_count) const
    {
        check_keys(table, "[[gpu]]", {"index", "name", "memory_gbs", "pci", "node", "node_source"});
        GpuDescription gpu;
        gpu.index = static_cast<int>(number(table, "index", 0, max_pu).value_or(position));
        gpu.name = text(table, "name", "");
        gpu.memory_gbs = real(table, "memory_gbs", max_memory_gbs);
        if (const toml::node* const pci = table.get("pci"); pci != nullptr) {
            gpu.pci_bus_id = normalized_pci_id(text(table, "pci", ""));
            if (gpu.pci_bus_id.empty()) {
                fail(*pci, "`pci` must be an address like \"0000:1b:00.0\"");
            }
        }
        const auto last_node = static_cast<std::int64_t>(node_count) - 1;
        gpu.numa_node = static_cast<int>(number(table, "node", 0, last_node).value_or(-1));
        gpu.numa_source =
            text(table, "node_source", gpu.numa_node >= 0 ? "description" : "the description names no node");
        return gpu;
    }

    /// Different positions below `count`; none if the table does not have the key.
    std::vector<int> positions(const toml::table& table, std::string_view key, std::size_t count) const
    {
        const toml::node* const node = table.get(key);
        if (node == nullptr) {
            return {};
        }
        std::vector<int> result;
        const toml::array* const array = node->as_array();
        if (array == nullptr || array->empty() || count == 0) {
            fail(*node, fmt::format("`{}` must be a list of positions, of {} that there are", key, count));
        }
        for (const toml::node& element : *array) {
            result.push_back(static_cast<int>(number(element, key, 0, static_cast<std::int64_t>(count) - 1)));
            if (std::find(result.begin(), result.end() - 1, result.back()) != result.end() - 1) {
                fail(element, fmt::format("`{}` has {} twice", key, result.back()));
            }
        }
        return result;
    }

    MachineLink read_link(const toml::table& table, const Topology& topology) const
    {
        check_keys(table, "[[link]]", {"kind", "gpus", "nodes", "gbs", "switched", "source"});
        MachineLink link;
        link.kind = text(table, "kind", "link");
        link.gpus = positions(table, "gpus", topology.gpus.size());
        link.nodes = positions(table, "nodes", topology.nodes.size());
        link.gbs = real(table, "gbs", max_memory_gbs);
        link.source = text(table, "source", "description");
        if (const toml::node* const switched = table.get("switched"); switched != nullptr) {
            const auto value = switched->value_exact<bool>();
            if (!value) {
                fail(*switched, "`switched` must be true or false");
            }
            link.switched = *value;
        }
        if (link.gpus.size() + link.nodes.size() < 2) {
            fail(table, "a [[link]] joins two or more of `gpus` and `nodes`");
        }
        return link;
    }

    Network read_network(const toml::node& node) const
    {
        const toml::table* const table = node.as_table();
        if (table == nullptr) {
            fail(node, "`network` must be a table");
        }
        check_keys(*table, "[network]", {"bandwidth_gbs", "adapters", "latency_us"});
        Network network;
        network.bandwidth_gbs = real(*table, "bandwidth_gbs", max_memory_gbs);
        network.adapters = static_cast<int>(number(*table, "adapters", 1, max_adapters).value_or(1));
        network.latency_us = real(*table, "latency_us", max_latency_us);
        for (const auto& [key, value] :
             {std::pair{"bandwidth_gbs", network.bandwidth_gbs}, std::pair{"latency_us", network.latency_us}}) {
            if (!(value > 0)) {
                const toml::node* const at = table->get(key);
                fail(at != nullptr ? *at : node, fmt::format("[network] needs `{}`, above 0", key));
            }
        }
        return network;
    }

    const std::string& name_;
    std::set<int> pus_;
    std::set<int> os_nodes_;
};

std::string quoted(std::string_view value)
{
    std::string result = "\"";
    for (const char c : value) {
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            result += fmt::format("\\u{:04X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        } else {
            result += c;
        }
    }
    return result + '"';
}

}  // namespace

Topology parse_description(std::string_view text, const std::string& name)
{
    try {
        return DescriptionReader(name).read(core::parse_toml(text));
    } catch (const core::TomlError& error) {
        throw Error(ErrorCode::io, fmt::format("{}:{}:{}: {}", name, error.line, error.column, error.what()));
    }
}

}  // namespace numa

std::string Topology::to_toml() const
{
    constexpr std::size_t cores_per_line = 12;
    std::string out;
    if (!name.empty()) {
        out += fmt::format("name = {}\n", numa::quoted(name));
    }
    for (const NumaNode& node : nodes) {
        out += fmt::format("\n[[node]]\nos_index = {}\n", node.os_index);
        out += fmt::format("memory_gib = {}\n", static_cast<double>(node.memory_bytes) / numa::bytes_per_gib);
        out += "core_pus = [";
        const std::vector<std::vector<int>> cores = numa::pus_by_core(node);
        for (std::size_t i = 0; i < cores.size(); ++i) {
            out += fmt::format("{}[{}],", i % cores_per_line == 0 ? "\n    " : " ", fmt::join(cores[i], ", "));
        }
        out += cores.empty() ? "]\n" : "\n]\n";
    }
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        const GpuDescription& gpu = gpus[i];
        out += "\n[[gpu]]\n";
        if (gpu.index != static_cast<int>(i)) {
            out += fmt::format("index = {}\n", gpu.index);
        }
        if (!gpu.name.empty()) {
            out += fmt::format("name = {}\n", numa::quoted(gpu.name));
        }
        if (gpu.memory_gbs > 0) {
            out += fmt::format("memory_gbs = {}\n", gpu.memory_gbs);
        }
        if (!gpu.pci_bus_id.empty()) {
            out += fmt::format("pci = {}\n", numa::quoted(gpu.pci_bus_id));
        }
        if (gpu.numa_node >= 0) {
            out += fmt::format("node = {}\n", gpu.numa_node);
        }
        out += fmt::format("node_source = {}\n", numa::quoted(gpu.numa_source));
    }
    for (const MachineLink& link : links) {
        out += fmt::format("\n[[link]]\nkind = {}\n", numa::quoted(link.kind));
        if (!link.gpus.empty()) {
            out += fmt::format("gpus = [{}]\n", fmt::join(link.gpus, ", "));
        }
        if (!link.nodes.empty()) {
            out += fmt::format("nodes = [{}]\n", fmt::join(link.nodes, ", "));
        }
        if (link.gbs > 0) {
            out += fmt::format("gbs = {}\n", link.gbs);
        }
        if (link.switched) {
            out += "switched = true\n";
        }
        out += fmt::format("source = {}\n", numa::quoted(link.source));
    }
    if (network.adapters > 0) {
        out += fmt::format("\n[network]\nbandwidth_gbs = {}\nadapters = {}\nlatency_us = {}\n", network.bandwidth_gbs,
                           network.adapters, network.latency_us);
    }
    return out;
}

}  // namespace rmsp
