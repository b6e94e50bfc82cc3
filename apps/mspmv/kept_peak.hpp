#pragma once

#include <cstddef>
#include <string_view>

#include <rmsp/limits.hpp>
#include <rmsp/runtime.hpp>

namespace rmsp::mspmv {

/// GFLOP/s that the arithmetic of those devices of the runtime together reached for which counts(index) is true, as
/// `mspmv doctor --limits` kept it; 0 where it kept nothing.
/// \param precision  as `matrix.precision` has it
template <class F>
double kept_peak_gflops(const Runtime& runtime, std::string_view precision, const F& counts)
{
    const DeviceLimits kept = kept_device_limits(runtime);
    double sum = 0;
    for (std::size_t i = 0; i < kept.devices.size(); ++i) {
        sum += counts(i) ? kept.devices[i].peak_gflops(precision == "float" ? "single" : "double") : 0;
    }
    return sum;
}

}  // namespace rmsp::mspmv
