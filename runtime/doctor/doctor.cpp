#include <rmsp/doctor.hpp>

#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "runtime/doctor/doctor_cache.hpp"
#include "runtime/doctor/examination.hpp"

namespace rmsp {
namespace doctor {

std::string machine_line(const Topology& topology)
{
    std::size_t cores = 0;
    for (const NumaNode& node : topology.nodes) {
        cores += node.cores.size();
    }
    const auto count = [](std::size_t n, const char* what) {
        return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
    };
    return fmt::format("{}: {}, {}, {}", topology.name.empty() ? "this machine" : topology.name,
                       count(topology.nodes.size(), "NUMA node"), count(cores, "core"),
                       count(topology.gpus.size(), "GPU"));
}

}  // namespace doctor

DoctorReport diagnose(const DoctorOptions& options)
{
    if (!options.runtime.topology_file.empty()) {
        throw Error(ErrorCode::usage,
                    "the self test needs the machine itself, not the description " + options.runtime.topology_file);
    }
    if (options.bytes < 1024 || !(options.time_limit_seconds > 0)) {
        throw Error(ErrorCode::usage,
                    fmt::format("the self test needs copies of at least 1024 bytes and a time limit above 0; it was "
                                "given {} bytes and {} s",
                                options.bytes, options.time_limit_seconds));
    }
    const auto state = node::open_devices(options.runtime);
    if (!options.refresh) {
        if (auto kept = doctor::load_doctor_report(*state)) {
            return std::move(*kept);
        }
    }
    DoctorReport report;
    report.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    report.machine = doctor::machine_line(state->topology);
    report.versions = doctor::versions();
    report.devices = doctor::device_names(state->infos);
    for (std::size_t i = 0; i < report.devices.size(); ++i) {
        report.devices[i] += ' ' + state->infos[i].name;
    }
    doctor::examine(*state, options, report);
    doctor::store_doctor_report(*state, report);
    return report;
}

}  // namespace rmsp
