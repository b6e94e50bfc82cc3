#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <rmsp/error.hpp>
#include <rmsp/topology.hpp>

#include "numa/description.hpp"

/// Any text gives a machine, Error(io), or Error(usage) for one larger than there are; anything else is a crash.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string text(reinterpret_cast<const char*>(data), size);
    try {
        const rmsp::Topology machine = rmsp::numa::parse_description(text, "fuzz");
        const auto placements = rmsp::place_gpus(machine, machine.gpus, rmsp::BindPolicy::automatic);
        if (rmsp::numa::parse_description(machine.to_toml(), "again").nodes != machine.nodes ||
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
