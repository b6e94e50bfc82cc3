#include "apps/mspmv/page/limits_page.hpp"

#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/mspmv/page/charts.hpp"
#include "apps/mspmv/page/html.hpp"

namespace rmsp::mspmv {
namespace {

constexpr std::array<const char*, 3> precisions{"half", "single", "double"};

std::string device_section(const DeviceLimit& device)
{
    std::string content;
    for (const char* const precision : precisions) {
        std::vector<Curve> bandwidth;
        for (const char* const kernel : {"copy", "mul", "add", "triad", "dot"}) {
            Curve& curve = bandwidth.emplace_back(Curve{kernel, {}});
            for (const BandwidthPoint& p : device.bandwidth) {
                if (p.kernel == kernel && p.precision == precision) {
                    curve.points.emplace_back(static_cast<double>(p.bytes) / 1024, p.gbs);
                }
            }
        }
        content += html::section(fmt::format("Bandwidth, {} precision", precision),
                                 curve_chart("bandwidth over sizes", "KiB of each array", "GB/s", bandwidth));
    }
    std::vector<Curve> compute;
    for (const char* const precision : precisions) {
        Curve& curve = compute.emplace_back(Curve{precision, {}});
        for (const ComputePoint& p : device.compute) {
            if (p.precision == precision) {
                curve.points.emplace_back(p.intensity, p.gflops);
            }
        }
    }
    content += html::section("Arithmetic", curve_chart("operations a second over operations for each byte",
                                                       "operations for each byte", "GFLOP/s", compute));
    std::vector<std::vector<std::string>> rows;
    for (const char* const precision : precisions) {
        if (device.peak_gflops(precision) > 0) {
            rows.push_back({precision, fmt::format("{:.4g}", device.memory_gbs(precision)),
                            fmt::format("{:.4g}", device.peak_gflops(precision))});
        }
    }
    return html::section(device.device,
                         html::table({"precision", "triad, GB/s", "peak, GFLOP/s"}, rows) + html::columns(content));
}

}  // namespace

std::string limits_page(const DeviceLimits& limits)
{
    std::string body;
    for (const DeviceLimit& device : limits.devices) {
        body += device_section(device);
    }
    std::string versions;
    for (const auto& [name, version] : limits.versions) {
        versions += fmt::format("{}{} {}", versions.empty() ? "" : ", ", name, version);
    }
    return html::document("Limits of the devices", {limits.machine, versions, "measured " + limits.date}, body);
}

}  // namespace rmsp::mspmv
