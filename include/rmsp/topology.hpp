#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rmsp/export.hpp>

namespace rmsp {

/// One NUMA node that has processors; a live one may have none within the process's cpuset. Numbers are the operating
/// system's.
struct NumaNode {
    int os_index = 0;
    std::int64_t memory_bytes = 0;  ///< 0: unknown, or not allowed to the process
    std::vector<int> cores;         ///< first hardware thread (PU) of each core, within the process's cpuset
    std::vector<int> pus;           ///< every hardware thread, core by core, within the process's cpuset
    bool operator==(const NumaNode&) const = default;
};

/// One GPU as the platform describes it.
struct GpuDescription {
    int index = 0;            ///< position in the machine; the CUDA ordinal when it came from CUDA
    std::string pci_bus_id;   ///< "0000:1b:00.0", lower case; empty when the description does not say
    std::string name;         ///< product name, empty when unknown
    int numa_node = -1;       ///< index into Topology::nodes (not the OS number), -1: the platform does not say
    std::string numa_source;  ///< who said so: "hwloc", "sysfs", "description", or why nobody did
    double memory_gbs = 0;    ///< bandwidth of its memory in GB/s by its data sheet; 0: the description does not say
    bool operator==(const GpuDescription&) const = default;
};

/// What joins machines of this kind to a cluster, by a description. Bandwidths are of one direction.
struct Network {
    double bandwidth_gbs = 0;  ///< of one adapter, in GB/s
    int adapters = 0;          ///< of one machine; 0: the description has no network
    double latency_us = 0;     ///< of a short message from a process on one machine to one on another
    bool operator==(const Network&) const = default;
};

/// What joins GPUs and NUMA nodes: each of `gpus` with each of `nodes`; without nodes the GPUs with each other, without
/// GPUs the nodes with each other.
struct MachineLink {
    std::string kind;        ///< "NVLink 2 x2", "PCIe 5 x16"
    std::vector<int> gpus;   ///< positions in Topology::gpus; of a plan: among the devices in use
    std::vector<int> nodes;  ///< positions in Topology::nodes
    double gbs = 0;          ///< of one direction between two of them, in GB/s; 0: unknown
    bool switched = false;   ///< by a switch: gbs is what each of the GPUs has for all others together
    std::string source;      ///< who says so: "description", "self test"
    bool operator==(const MachineLink&) const = default;
};

/// NUMA nodes, cores and GPUs of one machine: the live one, an hwloc XML file, or a description (TOML, see
/// docs/topology.md). A plain value: tests and `--dry-run` plan for a DGX or a Summit node anywhere.
struct Topology {
    std::string source;  ///< "live", or the file it was read from
    std::string name;    ///< product or description name, may be empty
    bool live = false;   ///< true: CPU numbers are this machine's, so threads may be bound to them
    std::vector<NumaNode> nodes;
    std::vector<GpuDescription> gpus;
    Network network{};
    std::vector<MachineLink> links{};  ///< as far as a description has them

    /// The machine the process runs on, restricted to the process's own cpuset.
    /// GPUs are those hwloc sees on the PCI bus.
    RMSP_API static Topology detect();
    /// Reads an hwloc XML file (by content) or a TOML description.
    /// \throws Error(io) with file and line
    RMSP_API static Topology load(const std::string& path);
    /// The TOML description of this topology; load() of it gives an equal value (but for source and live).
    RMSP_API std::string to_toml() const;
};

/// The described machines that come with librmsp ("dgx-h200", "summit", ...), in alphabetic order: the files of
/// share/rmsp/machines beside the library. Empty where that folder is not there.
RMSP_API std::vector<std::string> machine_names();
/// The description of one of them, for Topology::load() and RuntimeOptions::topology_file.
/// \throws Error(usage) for an unknown name, with those that are known and the nearest of them
RMSP_API std::string machine_file(const std::string& name);

/// How strictly threads are bound. RMSP_BIND or runtime.bind sets it. automatic: where the system allows it; strict: it
/// is an error of the Runtime's constructor if a thread cannot be bound.
enum class BindPolicy { automatic, none, strict };

/// Where the worker thread (or thread group) of one device runs.
struct Placement {
    int device = 0;            ///< position among the devices in use
    int node = -1;             ///< index into Topology::nodes
    std::vector<int> cpus;     ///< hardware threads for the worker and its helpers; empty: not bound
    std::vector<int> threads;  ///< one PU for each compute thread (host devices: their OpenMP team), a subset of cpus
    std::string reason;        ///< printed by `mspmv topo` and in the plan
    bool strict = false;       ///< that a thread cannot be bound is an error (BindPolicy::strict)
};

/// Places the workers of GPUs: each near its GPU's NUMA node, the node's cores divided evenly among its GPUs. GPUs
/// without a node are spread evenly over the nodes in order, and the reason says so. (MSREP, section 4.2)
RMSP_API std::vector<Placement> place_gpus(const Topology& topology, const std::vector<GpuDescription>& gpus,
                                           BindPolicy policy);

/// Places `count` host devices of `threads_each` threads (0: the cores divided evenly), spread over the NUMA nodes in
/// order.
/// \throws Error(usage) if policy is strict and there are fewer cores than threads
RMSP_API std::vector<Placement> place_host_devices(const Topology& topology, int count, int threads_each,
                                                   BindPolicy policy);

/// What `mspmv topo` prints: nodes, cores, GPUs, and each placement with its reason.
RMSP_API std::string describe(const Topology& topology, const std::vector<Placement>& placements);

}  // namespace rmsp
