#include "runtime/doctor_cache.hpp"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <rmsp/version.hpp>

#include "runtime/cuda/cuda_backend.hpp"

namespace rmsp::detail {
namespace {

namespace fs = std::filesystem;

/// FNV-1a; it only has to tell machines apart.
std::uint64_t hash(std::string_view text)
{
    std::uint64_t h = 0xcbf29ce484222325u;
    for (const char c : text) {
        h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    }
    return h;
}

/// "" if there is none.
fs::path folder(const std::string& cache)
{
    if (cache == "off") {
        return {};
    }
    if (cache != "auto" && !cache.empty()) {
        return cache;
    }
    const char* const xdg = std::getenv("XDG_CACHE_HOME");
    if (xdg != nullptr && fs::path(xdg).is_absolute()) {
        return fs::path(xdg) / "rmsp";
    }
    const char* const home = std::getenv("HOME");
    return home != nullptr && *home != '\0' ? fs::path(home) / ".cache" / "rmsp" : fs::path();
}

}  // namespace

std::map<std::string, std::string> versions()
{
    auto all = runtime::cuda_versions();
    all["librmsp"] = fmt::format("{} (commit {}; {})", version(), commit(), build_features());
    return all;
}

std::string doctor_cache_file(const RuntimeState& runtime)
{
    const fs::path place = folder(runtime.options.cache);
    if (place.empty()) {
        return "";
    }
    std::string key = runtime.topology.to_toml();
    for (const DeviceInfo& device : runtime.infos) {
        key += fmt::format("\n{}:{} {} {} {}", to_string(device.kind), device.index, device.name, device.pci_bus_id,
                           fmt::join(device.placement.cpus, ","));
    }
    for (const auto& [name, value] : versions()) {
        key += fmt::format("\n{} {}", name, value);
    }
    return (place / fmt::format("doctor-{:016x}.json", hash(key))).string();
}

std::optional<DoctorReport> load_doctor_report(const std::string& path)
{
    std::error_code error;
    if (path.empty() || !fs::exists(path, error)) {
        return std::nullopt;
    }
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    try {
        DoctorReport report = parse_doctor_report(text);
        report.cached = true;
        return report;
    } catch (const std::exception& e) {
        spdlog::warn("{} is ignored, it is not a self test's result: {}; mspmv doctor --refresh writes it anew", path,
                     e.what());
        return std::nullopt;
    }
}

void store_doctor_report(const std::string& path, const DoctorReport& report)
{
    if (path.empty()) {
        return;
    }
    const std::string temporary = fmt::format("{}.part-{}", path, getpid());
    try {
        fs::create_directories(fs::path(path).parent_path());
        std::ofstream file(temporary, std::ios::binary);
        file << report.to_json();
        file.close();
        if (!file) {
            throw Error(ErrorCode::io, "it cannot be written");
        }
        fs::rename(temporary, path);
    } catch (const std::exception& e) {
        std::error_code ignored;
        fs::remove(temporary, ignored);
        spdlog::warn("the self test's result is not kept in {}: {}", path, e.what());
    }
}

std::vector<runtime::TestedTransport> tested_transports(const RuntimeState& runtime)
{
    if (runtime.shared_memory() || runtime.devices() < 2) {
        return {};
    }
    std::vector<runtime::TestedTransport> tested;
    if (const auto report = load_doctor_report(doctor_cache_file(runtime))) {
        for (const DoctorCheck& check : report->checks) {
            if (check.name == "transport" && check.verdict != Verdict::skipped) {
                const bool passed = check.verdict == Verdict::passed;
                tested.push_back({check.subject, passed,
                                  passed ? fmt::format("passed the self test of {}", report->date)
                                         : fmt::format("failed the self test of {}: {}", report->date, check.detail)});
            }
        }
    }
    return tested;
}

}  // namespace rmsp::detail
