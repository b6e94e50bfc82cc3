#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <rmsp/doctor.hpp>

#include "runtime/state.hpp"

/// The self test's results in a file. Whatever is wrong with the file or its folder costs a warning at most: the result is then
/// as if there were none.
namespace rmsp::detail {

/// librmsp and its commit, the driver and the libraries below it.
std::map<std::string, std::string> versions();

/// File for these devices on this machine with these versions, named by a hash of them all; "" if the cache is off or has no
/// place (see RuntimeOptions::cache).
std::string doctor_cache_file(const RuntimeState& runtime);

std::optional<DoctorReport> load_doctor_report(const std::string& path);
/// Creates the folder; the file appears when it is whole.
void store_doctor_report(const std::string& path, const DoctorReport& report);

/// What the cached self test of these devices says of the transports; nothing where there is none.
std::vector<runtime::TestedTransport> tested_transports(const RuntimeState& runtime);

/// DoctorReport::to_json() read back. \throws std::exception for text that is not one
DoctorReport parse_doctor_report(const std::string& json);

}  // namespace rmsp::detail
