#pragma once

#include <string>

#include <rmsp/limits.hpp>

namespace rmsp::mspmv {

/// What the devices reach as one page: bandwidth over sizes and operations over intensities, a section a device.
std::string limits_page(const DeviceLimits& limits);

}  // namespace rmsp::mspmv
