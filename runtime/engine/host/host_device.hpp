#pragma once

#include <memory>

#include "runtime/engine/device.hpp"

namespace rmsp::engine {

/// A device made of a group of cores: the calling thread and its OpenMP team, info.compute_units threads in all, each
/// bound to one of info.placement.threads. Memory comes from info.numa_node. Work is done when a function returns;
/// events are times. \throws Error(usage) without threads
std::unique_ptr<Device> make_host_device(DeviceInfo info);

}  // namespace rmsp::engine
