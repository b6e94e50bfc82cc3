#pragma once

#include <vector>

#include <rmsp/doctor.hpp>

#include "runtime/node/node.hpp"

/// What is known of the links between devices: described, or measured by the self test.
namespace rmsp::doctor {

using detail::RuntimeState;

/// Of the devices in use: positions among them, not among the GPUs of the machine.
std::vector<MachineLink> known_links(const RuntimeState& runtime);

/// What the self test measured, of devices that are near these nodes (-1: none is known). Links that are alike within a
/// tenth are one.
std::vector<MachineLink> measured_links(const DoctorReport& report, const std::vector<int>& nodes);

}  // namespace rmsp::doctor
