#pragma once

#include <string>
#include <vector>

#include <rmsp/doctor.hpp>

#include "runtime/node/node.hpp"

/// The self test's checks of the devices, their links and the transports.
namespace rmsp::doctor {

using detail::RuntimeState;

/// "cuda:1"; "cuda:1#0", "cuda:1#1" of devices that share a GPU.
std::vector<std::string> device_names(const std::vector<DeviceInfo>& infos);

/// Makes every check, and adds what it finds and measures to the report. What fails is in the report; devices are left
/// without the memory that the checks took.
void examine(RuntimeState& state, const DoctorOptions& options, DoctorReport& report);

}  // namespace rmsp::doctor
