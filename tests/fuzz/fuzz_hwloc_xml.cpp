#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <rmsp/error.hpp>
#include <rmsp/topology.hpp>

#include "numa/description.hpp"
#include "numa/hwloc_topology.hpp"

/// Any text gives a machine, or an error that fuzz_topology knows; anything else is a crash. A machine's description
/// gives the same machine again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static const bool quiet = ::setenv("HWLOC_HIDE_ERRORS", "2", 1) == 0;
    const std::string text(reinterpret_cast<const char*>(data), size);
    try {
        const rmsp::Topology machine = rmsp::numa::topology_from_xml(text, "fuzz");
        const auto placements = rmsp::place_gpus(machine, machine.gpus, rmsp::BindPolicy::automatic);
        rmsp::place_host_devices(machine, 2, 1, rmsp::BindPolicy::automatic);
        if (!quiet || rmsp::numa::parse_description(machine.to_toml(), "again").nodes != machine.nodes ||
            rmsp::describe(machine, placements).empty()) {
            std::abort();
        }
    } catch (const rmsp::Error& error) {
        if (error.code() != rmsp::ErrorCode::io && error.code() != rmsp::ErrorCode::usage) {
            std::abort();
        }
    }
    return 0;
}
