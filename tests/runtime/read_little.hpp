#pragma once

#include <rmsp/runtime.hpp>

#include "runtime/node/node.hpp"

namespace rmsp::test {

/// What the runtime measures, it measures with little of the host's memory from now on. Else that is what no cache
/// holds, several times over, with each runtime: most of the time that a test of measurements takes under a sanitizer.
/// It is for tests that want them made, as always, and told: not for those that hold them against anything.
inline void read_little(const Runtime& runtime)
{
    detail::RuntimeAccess::state(runtime)->most_host_bytes_read = std::int64_t{1} << 20;
}

}  // namespace rmsp::test
