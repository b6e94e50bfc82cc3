#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <rmsp/export.hpp>
#include <rmsp/runtime.hpp>

namespace rmsp {

/// How fast one of BabelStream's kernels went over arrays of one size.
struct BandwidthPoint {
    std::string kernel;      ///< "copy", "mul", "add", "triad", "dot"
    std::string precision;   ///< "half", "single", "double"
    std::int64_t bytes = 0;  ///< of each array
    double gbs = 0;          ///< bytes read and written, in GB/s; the best of a few runs
};

/// How fast chains of fused multiply-adds over an array went.
struct ComputePoint {
    std::string precision;
    double intensity = 0;  ///< operations for each byte moved
    double gflops = 0;     ///< the best of a few runs
};

/// What one device reaches while all others do the same.
struct DeviceLimit {
    std::string device;  ///< "cuda:0 NVIDIA H200"
    std::vector<BandwidthPoint> bandwidth;
    std::vector<ComputePoint> compute;

    /// The fastest triad over the largest arrays of that precision, GB/s; 0: not measured.
    RMSP_API double memory_gbs(const std::string& precision = "double") const;
    /// The fastest chain of that precision, GFLOP/s; 0: not measured.
    RMSP_API double peak_gflops(const std::string& precision = "double") const;
};

/// The devices' limits. (Figs. 6 to 8 of Anzt et al., "Ginkgo - A math library designed for platform portability")
struct DeviceLimits {
    std::string date;                             ///< when they were measured, "2026-11-23T12:40:00Z"
    std::string machine;                          ///< in one line
    std::map<std::string, std::string> versions;  ///< as DoctorReport::versions
    std::vector<DeviceLimit> devices;

    /// A table of the largest arrays and of the peaks.
    RMSP_API std::string to_text() const;
    /// Every point, as a JSON object (docs/doctor.md).
    RMSP_API std::string to_json() const;
};

struct LimitOptions {
    /// Bytes of the largest array, at least 4096: three of them lie on each device. Sizes go down from there by factors
    /// of 4 to 16 KiB. 0: 1 GiB on GPUs; on host devices 128 MiB for all together.
    std::int64_t bytes = 0;
    double seconds_each = 0.02;  ///< that a kernel is repeated for, three times
};

/// Measures on all devices at once and keeps the result in the runtime's cache. Blocks.
/// \throws Error(usage) for bad options or a described machine, Error(out_of_memory) if the arrays find no room
RMSP_API DeviceLimits measure_device_limits(Runtime& runtime, const LimitOptions& options = {});

/// What measure_device_limits() kept for these devices on this machine with these versions; without devices if there is
/// nothing. A damaged file is a warning, and nothing.
RMSP_API DeviceLimits kept_device_limits(const Runtime& runtime);

}  // namespace rmsp
