#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <rmsp/doctor.hpp>

#include "runtime/node/node.hpp"

/// The self test's results among the runtime's cache files. Whatever is wrong with a file costs a warning at most: the
/// result is then as if there were none.
namespace rmsp::doctor {

using detail::RuntimeState;

/// librmsp and its commit, the driver and the libraries below it.
std::map<std::string, std::string> versions();

/// The machine's name, nodes, cores and GPUs.
std::string machine_line(const Topology& topology);

/// Name of the file for these devices on this machine with these versions: a hash of them all.
std::string doctor_cache_name(const RuntimeState& runtime);

std::optional<DoctorReport> load_doctor_report(const RuntimeState& runtime);
void store_doctor_report(const RuntimeState& runtime, const DoctorReport& report);

/// What the cached self test of these devices says of the transports; nothing where there is none.
std::vector<transport::TestedTransport> tested_transports(const RuntimeState& runtime);

/// DoctorReport::to_json() read back. \throws std::exception for text that is not one
DoctorReport parse_doctor_report(const std::string& json);

}  // namespace rmsp::doctor
