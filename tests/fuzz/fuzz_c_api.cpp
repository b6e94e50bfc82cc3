#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <sys/resource.h>

#include "tests/fuzz/c_api_session.hpp"

namespace rmsp::fuzz {
namespace {

/// Memory that no small matrix needs is refused, so that wild sizes end soon.
bool limit_memory()
{
    constexpr rlim_t most_bytes = rlim_t{3} << 30;
    const rlimit limit{most_bytes, most_bytes};
    return sanitized || ::setrlimit(RLIMIT_AS, &limit) == 0;  // sanitizers map terabytes themselves
}

}  // namespace
}  // namespace rmsp::fuzz

/// The bytes are a sequence of calls of the C interface, with small matrices on host devices of a thread each. Every
/// call has to return a status that its declaration knows, failed ones leave the places of results alone, and products
/// that succeeded are what plain loops compute.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    // Each input opens a runtime, for which hwloc would read the machine's PCI devices anew.
    static const bool set_up = rmsp::fuzz::limit_memory() && ::setenv("HWLOC_COMPONENTS", "-pci", 0) == 0;
    rmsp::fuzz::require(set_up, "memory cannot be limited");
    rmsp::fuzz::Session(data, size).run();
    return 0;
}
