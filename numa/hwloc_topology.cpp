#include "numa/hwloc_topology.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>

#include <fmt/format.h>
#include <hwloc.h>

#include <rmsp/error.hpp>

#include "numa/binding.hpp"
#include "numa/xml_check.hpp"

namespace rmsp::numa {
namespace {

constexpr unsigned nvidia_vendor = 0x10de;
constexpr unsigned vga_class = 0x0300;
constexpr unsigned accelerator_class = 0x0302;  // "3D controller": GPUs without a display output

struct DestroyTopology {
    void operator()(hwloc_topology_t t) const noexcept { hwloc_topology_destroy(t); }
};
using TopologyHandle = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, DestroyTopology>;

struct FreeBitmap {
    void operator()(hwloc_bitmap_t b) const noexcept { hwloc_bitmap_free(b); }
};
using Bitmap = std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, FreeBitmap>;

/// What errno says after a call of hwloc.
[[noreturn]] void fail(const char* what)
{
    throw Error(errno == ENOMEM ? ErrorCode::out_of_memory : ErrorCode::internal,
                fmt::format("{}: {}", what, std::strerror(errno)));
}

Bitmap checked(hwloc_bitmap_t bitmap)
{
    if (bitmap == nullptr) {
        throw std::bad_alloc();
    }
    return Bitmap(bitmap);
}

TopologyHandle new_topology()
{
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) {
        fail("hwloc cannot start");
    }
    TopologyHandle topology(raw);
    // Nodes outside the process's own set are kept, because GPUs hang on them; allowed_pus() leaves their cores out.
    hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    return topology;
}

// Hardware threads that may be used: those the machine or its description allows, and live ones the process has.
Bitmap allowed_pus(hwloc_topology_t topology, bool live)
{
    Bitmap allowed = checked(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology)));
    if (live) {
        const Bitmap own = checked(hwloc_bitmap_alloc());
        for (const int pu : process_cpuset()) {
            hwloc_bitmap_set(own.get(), static_cast<unsigned>(pu));
        }
        hwloc_bitmap_and(allowed.get(), allowed.get(), own.get());
    }
    return allowed;
}

std::vector<hwloc_obj_t> objects_inside(hwloc_topology_t topology, hwloc_const_cpuset_t set, hwloc_obj_type_t type)
{
    std::vector<hwloc_obj_t> result;
    hwloc_obj_t object = nullptr;
    while ((object = hwloc_get_next_obj_covering_cpuset_by_type(topology, set, type, object)) != nullptr) {
        result.push_back(object);
    }
    return result;
}

NumaNode read_node(hwloc_topology_t topology, hwloc_obj_t object, hwloc_const_bitmap_t allowed)
{
    NumaNode node;
    node.os_index = static_cast<int>(object->os_index);
    if (hwloc_bitmap_isset(hwloc_topology_get_allowed_nodeset(topology), object->os_index)) {
        node.memory_bytes = static_cast<std::int64_t>(
            std::min<std::uint64_t>(object->attr->numanode.local_memory, std::numeric_limits<std::int64_t>::max()));
    }
    // Some virtual machines and old kernels tell processors, but no cores.
    std::vector<hwloc_obj_t> cores = objects_inside(topology, object->cpuset, HWLOC_OBJ_CORE);
    if (cores.empty()) {
        cores = objects_inside(topology, object->cpuset, HWLOC_OBJ_PU);
    }
    for (const hwloc_obj_t core : cores) {
        bool first = true;
        unsigned pu = 0;
        hwloc_bitmap_foreach_begin(pu, core->cpuset)
        {
            if (hwloc_bitmap_isset(allowed, pu)) {
                if (first) {
                    node.cores.push_back(static_cast<int>(pu));
                }
                node.pus.push_back(static_cast<int>(pu));
                first = false;
            }
        }
        hwloc_bitmap_foreach_end();
    }
    return node;
}

// NUMA nodes that have processors. Nodes of high-bandwidth or GPU memory repeat the processors of the node that they
// hang on, and come after it in the operating system's order.
std::vector<hwloc_obj_t> processor_nodes(hwloc_topology_t topology)
{
    std::vector<hwloc_obj_t> all;
    hwloc_obj_t object = nullptr;
    while ((object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, object)) != nullptr) {
        all.push_back(object);
    }
    std::sort(all.begin(), all.end(), [](hwloc_obj_t a, hwloc_obj_t b) { return a->os_index < b->os_index; });
    const Bitmap taken = checked(hwloc_bitmap_alloc());
    std::vector<hwloc_obj_t> result;
    for (const hwloc_obj_t node : all) {
        if (!hwloc_bitmap_iszero(node->cpuset) && !hwloc_bitmap_intersects(taken.get(), node->cpuset)) {
            hwloc_bitmap_or(taken.get(), taken.get(), node->cpuset);
            result.push_back(node);
        }
    }
    return result;
}

std::string gpu_name(hwloc_topology_t topology, hwloc_obj_t pci)
{
    hwloc_obj_t device = nullptr;
    while ((device = hwloc_get_next_osdev(topology, device)) != nullptr) {
        const char* model = hwloc_obj_get_info_by_name(device, "GPUModel");
        if (model != nullptr && device->parent == pci) {
            return model;
        }
    }
    const char* device_name = hwloc_obj_get_info_by_name(pci, "PCIDevice");
    return device_name != nullptr ? device_name : "";
}

// What Linux says about a PCI device: a node's OS number, or -1 where the firmware is silent; nothing if it has no such
// file.
std::optional<int> sysfs_node(const std::string& pci_bus_id)
{
    std::ifstream file(fmt::format("/sys/bus/pci/devices/{}/numa_node", pci_bus_id));
    int node = -1;
    if (file >> node) {
        return node;
    }
    return std::nullopt;
}

void locate_gpu(GpuDescription& gpu, hwloc_topology_t topology, hwloc_obj_t pci, const std::vector<hwloc_obj_t>& nodes,
                bool live)
{
    if (nodes.size() == 1) {
        gpu.numa_node = 0;
        gpu.numa_source = "the machine has one NUMA node";
        return;
    }
    const hwloc_obj_t parent = hwloc_get_non_io_ancestor_obj(topology, pci);
    for (std::size_t i = 0; i < nodes.size() && parent != nullptr; ++i) {
        if (!hwloc_bitmap_iszero(parent->cpuset) && hwloc_bitmap_isincluded(parent->cpuset, nodes[i]->cpuset)) {
            gpu.numa_node = static_cast<int>(i);
            gpu.numa_source = "hwloc";
            return;
        }
    }
    gpu.numa_source = "hwloc places its PCI device on no single NUMA node";
    if (live) {
        const std::optional<int> os_node = sysfs_node(gpu.pci_bus_id);
        for (std::size_t i = 0; i < nodes.size() && os_node; ++i) {
            if (static_cast<int>(nodes[i]->os_index) == *os_node) {
                gpu.numa_node = static_cast<int>(i);
                gpu.numa_source = "sysfs";
                return;
            }
        }
        gpu.numa_source += os_node ? fmt::format(", and sysfs says {}", *os_node) : ", and sysfs has no entry for it";
    }
}

std::vector<GpuDescription> read_gpus(hwloc_topology_t topology, const std::vector<hwloc_obj_t>& nodes, bool live)
{
    std::vector<hwloc_obj_t> found;
    hwloc_obj_t object = nullptr;
    while ((object = hwloc_get_next_pcidev(topology, object)) != nullptr) {
        const auto& pci = object->attr->pcidev;
        if (pci.vendor_id == nvidia_vendor && (pci.class_id == accelerator_class || pci.class_id == vga_class)) {
            found.push_back(object);
        }
    }
    const auto key = [](hwloc_obj_t o) {
        const auto& pci = o->attr->pcidev;
        return std::tuple(pci.domain, pci.bus, pci.dev, pci.func);
    };
    std::sort(found.begin(), found.end(), [&](hwloc_obj_t a, hwloc_obj_t b) { return key(a) < key(b); });
    std::vector<GpuDescription> gpus;
    for (const hwloc_obj_t device : found) {
        const auto& pci = device->attr->pcidev;
        GpuDescription gpu;
        gpu.index = static_cast<int>(gpus.size());
        gpu.pci_bus_id = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
        gpu.name = gpu_name(topology, device);
        locate_gpu(gpu, topology, device, nodes, live);
        gpus.push_back(std::move(gpu));
    }
    return gpus;
}

std::string machine_name(hwloc_topology_t topology)
{
    const hwloc_obj_t root = hwloc_get_root_obj(topology);
    for (const char* key : {"DMIProductName", "PlatformModel"}) {
        const char* value = hwloc_obj_get_info_by_name(root, key);
        if (value != nullptr && *value != '\0') {
            return value;
        }
    }
    return "";
}

Topology read_topology(hwloc_topology_t topology, bool live)
{
    const Bitmap allowed = allowed_pus(topology, live);
    const std::vector<hwloc_obj_t> nodes = processor_nodes(topology);
    Topology result;
    result.name = machine_name(topology);
    result.live = live;
    for (const hwloc_obj_t node : nodes) {
        result.nodes.push_back(read_node(topology, node, allowed.get()));
    }
    result.gpus = read_gpus(topology, nodes, live);
    return result;
}

/// hwloc makes every object that a synthetic description multiplies out to, of which there can be billions, and
/// compares those below the same one with each other. A number counts objects wherever it stands, with a type before it
/// or without, but in a type's name, in the parentheses behind a count, and in brackets that have no count.
/// \throws Error(usage) if these are more than any machine has
void require_reasonable(std::string_view description, const std::string& where)
{
    constexpr double most_objects = 1 << 14;
    constexpr double most_of_one = 512;
    const std::string text(description);
    double objects = 1;
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    for (std::size_t at = 0; at < text.size();) {
        const char before = at > 0 ? text[at - 1] : ' ';
        const std::size_t bracket = text[at] == '[' ? text.find(']', at) : std::string::npos;
        if (bracket != std::string::npos && text.find(':', at) > bracket) {
            at = bracket;
        } else if (!is_digit(text[at])) {
            ++at;
        } else if (std::isalpha(static_cast<unsigned char>(before)) != 0) {
            at = std::min(text.find_first_not_of("0123456789", at), text.size());
        } else {
            // As hwloc reads it: -1 is the largest number there is.
            char* end = nullptr;
            const auto count = static_cast<double>(std::strtoull(text.c_str() + at - (before == '-' ? 1 : 0), &end, 0));
            objects *= std::max(1.0, count);
            if (!(objects <= most_objects) || count > most_of_one) {
                throw Error(ErrorCode::usage, fmt::format("{}: the synthetic machine has more than {} objects, or more "
                                                          "than {} below one",
                                                          where, most_objects, most_of_one));
            }
            at = static_cast<std::size_t>(end - text.c_str());
            const std::size_t parenthesis = *end == '(' ? text.find(')', at) : std::string::npos;
            at = parenthesis != std::string::npos ? parenthesis : at;
        }
    }
}

}  // namespace

Topology live_topology()
{
    if (const char* const synthetic = std::getenv("HWLOC_SYNTHETIC"); synthetic != nullptr) {
        require_reasonable(synthetic, "HWLOC_SYNTHETIC");
    }
    const TopologyHandle topology = new_topology();
    // These plug-ins would open the GPUs, before threads are bound. A build of hwloc that lacks one refuses the name:
    // no harm.
    for (const char* component : {"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl"}) {
        hwloc_topology_set_components(topology.get(), HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
    }
    if (hwloc_topology_load(topology.get()) != 0) {
        fail("hwloc cannot read this machine");
    }
    // HWLOC_XMLFILE and HWLOC_SYNTHETIC can make hwloc report another machine.
    const bool live = hwloc_topology_is_thissystem(topology.get()) != 0;
    Topology result = read_topology(topology.get(), live);
    result.source = live ? "live" : "hwloc environment";
    return result;
}

Topology topology_from_xml(std::string_view text, const std::string& name)
{
    require_sound_xml(text, name);
    const TopologyHandle topology = new_topology();
    const std::string buffer(text);  // hwloc wants the terminating null counted
    if (buffer.size() >= INT_MAX ||
        hwloc_topology_set_xmlbuffer(topology.get(), buffer.c_str(), static_cast<int>(buffer.size()) + 1) != 0 ||
        hwloc_topology_load(topology.get()) != 0) {
        throw Error(ErrorCode::io, fmt::format("{}:1: hwloc {:#x} cannot read these {} bytes of XML as a machine", name,
                                               hwloc_get_api_version(), buffer.size()));
    }
    return read_topology(topology.get(), false);
}

Topology topology_from_synthetic(const std::string& description, const std::string& where)
{
    require_reasonable(description, where);
    const TopologyHandle topology = new_topology();
    if (hwloc_topology_set_synthetic(topology.get(), description.c_str()) != 0 ||
        hwloc_topology_load(topology.get()) != 0) {
        throw Error(ErrorCode::io,
                    fmt::format("{}: hwloc does not understand the synthetic machine \"{}\"", where, description));
    }
    return read_topology(topology.get(), false);
}

}  // namespace rmsp::numa
