#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine/worker.hpp"
#include "runtime/transport/link.hpp"

namespace rmsp::transport {

/// What an earlier self test found of a transport between the same devices (docs/doctor.md).
struct TestedTransport {
    std::string name;
    bool passed = false;
    std::string detail;  ///< why it did not; when it was tested
};

/// What connect() found: the first transport of the list that connected and moved data correctly.
struct Connection {
    std::unique_ptr<Link> transport;  ///< null: none needed (one device, or devices that share host memory)
    std::string name;    ///< the transport's to begin with, or "shared", "none"; "unknown" on a described machine
    std::string reason;  ///< why this one; what failed before it
};

/// Those after it in the list.
std::vector<std::string> names_behind(const std::vector<std::string>& names, const std::string& name);

/// Tries the transports in order (empty: that of the table); each must pass a test with data, on every pair of devices,
/// before it is trusted. One that `tested` says has passed is not tested again, and one that has not is not tried.
/// \throws Error(usage) for an unknown name, Error(device) if none of them works, Error(out_of_memory) if one of them
/// would have had there been room
Connection connect(std::span<const std::unique_ptr<engine::Worker>> workers, const std::vector<std::string>& order,
                   std::span<const TestedTransport> tested = {});

}  // namespace rmsp::transport
