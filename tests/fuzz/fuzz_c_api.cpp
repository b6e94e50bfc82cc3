#include <cstddef>
#include <cstdint>

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
    static const bool limited = rmsp::fuzz::limit_memory();
    rmsp::fuzz::require(limited, "memory cannot be limited");
    rmsp::fuzz::Session(data, size).run();
    return 0;
}
