#pragma once

#include <rmsp/kernel_info.hpp>

namespace rmsp::core {

/// True where host code may read and write the devices' memory, and they the host's: nothing is copied then.
constexpr bool shares_host_memory(DeviceKind kind) noexcept { return kind == DeviceKind::host; }

}  // namespace rmsp::core
