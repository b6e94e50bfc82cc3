#pragma once

#include <memory>

#include "runtime/engine/device.hpp"

namespace rmsp::engine {

/// A device made of a group of cores: the calling thread and its OpenMP team, info.compute_units threads in all, each
/// bound to one of info.placement.threads. Memory comes from info.numa_node. Work is done when a function returns;
/// events are times. \throws Error(usage) without threads
std::unique_ptr<Device> make_host_device(DeviceInfo info);

/// Whether host devices of one thread that are opened from now on are Device::open_to_callers(): for tests, which so
/// have on any machine what GPUs do. At first they are not.
void open_serial_devices_to_callers(bool open) noexcept;

}  // namespace rmsp::engine
