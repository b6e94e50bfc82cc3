#pragma once

#include <memory>
#include <span>

#include "runtime/transport/row.hpp"

namespace rmsp::transport {

/// Through pinned host memory: works between any devices.
std::unique_ptr<Transport> connect_host_transport(std::span<const std::unique_ptr<engine::Worker>> workers = {},
                                                  const ConnectOptions& options = {});

}  // namespace rmsp::transport
