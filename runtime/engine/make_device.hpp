#pragma once

#include <memory>

#include "runtime/engine/device.hpp"

namespace rmsp::engine {

/// Opens the device of that kind and index, on the thread that will use it. `sharers` devices of a runtime stand on a
/// GPU: each has its share of it. \throws Error(device) if it cannot be opened, NotCompiled for a GPU in a build
/// without CUDA
std::unique_ptr<Device> make_device(const DeviceInfo& info, int sharers = 1);

}  // namespace rmsp::engine
