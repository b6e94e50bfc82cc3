#include "runtime/doctor/doctor_cache.hpp"

#include <string_view>

#include <fmt/format.h>

#include <rmsp/doctor.hpp>
#include <rmsp/version.hpp>

#include "core/log.hpp"
#include "runtime/engine/cuda/cuda_backend.hpp"

namespace rmsp::doctor {

std::map<std::string, std::string> versions()
{
    auto all = engine::cuda_versions();
    all["librmsp"] = fmt::format("{} (commit {}; {})", version(), commit(), build_features());
    return all;
}

namespace {

constexpr std::string_view kept = "doctor-";

}  // namespace

std::string doctor_cache_name(const RuntimeState& runtime)
{
    std::string key = node::machine_key(runtime);
    for (const auto& [name, value] : versions()) {
        key += fmt::format("\n{} {}", name, value);
    }
    return fmt::format("{}{:016x}", kept, engine::fingerprint(key));
}

std::optional<DoctorReport> load_doctor_report(const RuntimeState& runtime)
{
    // The name has the versions of CUDA's libraries, for which these are loaded.
    if (!runtime.cache.has_any(kept)) {
        return std::nullopt;
    }
    const std::string name = doctor_cache_name(runtime);
    std::string damaged;
    if (const auto text = runtime.cache.read(name, &damaged)) {
        try {
            DoctorReport report = parse_doctor_report(*text);
            report.cached = true;
            return report;
        } catch (const std::exception& e) {
            damaged = fmt::format("{}: {}", runtime.cache.path(name), e.what());
        }
    }
    if (!damaged.empty()) {
        core::log_warning(fmt::format("a self test's result is ignored, mspmv doctor writes it anew: {}", damaged));
    }
    return std::nullopt;
}

void store_doctor_report(const RuntimeState& runtime, const DoctorReport& report)
{
    if (!runtime.cache.enabled()) {
        if (runtime.options.cache != "off") {
            core::log_warning("the self test's result is not kept: neither XDG_CACHE_HOME nor HOME names a folder");
        }
        return;
    }
    const std::string name = doctor_cache_name(runtime);
    if (!runtime.cache.write(name, report.to_json())) {
        core::log_warning(
            fmt::format("the self test's result is not kept: {} cannot be written", runtime.cache.path(name)));
    }
}

std::vector<transport::TestedTransport> tested_transports(const RuntimeState& runtime)
{
    if (runtime.shared_memory() || runtime.devices() < 2) {
        return {};
    }
    std::vector<transport::TestedTransport> tested;
    if (const auto report = load_doctor_report(runtime)) {
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

}  // namespace rmsp::doctor

std::map<std::string, std::string> rmsp::library_versions() { return doctor::versions(); }
