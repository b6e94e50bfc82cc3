#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "runtime/doctor/doctor_cache.hpp"

namespace rmsp {
namespace {

using Json = nlohmann::ordered_json;
using Matrix = std::vector<std::vector<double>>;
using Align = text::Table::Align;

constexpr std::array verdicts{Verdict::passed, Verdict::skipped, Verdict::warning, Verdict::failed};

std::string rate(double gbs) { return gbs > 0 ? fmt::format("{:.1f}", gbs) : "-"; }

/// "cuda:0 NVIDIA H200" -> "cuda:0".
std::string short_name(const std::string& device) { return device.substr(0, device.find(' ')); }

std::string host_table(const DoctorReport& report)
{
    text::Table table({{"device", Align::left},
                       {"to it", Align::right},
                       {"from it", Align::right},
                       {"to all at once", Align::right},
                       {"from all at once", Align::right}});
    for (std::size_t i = 0; i < report.to_device.size(); ++i) {
        table.add({short_name(report.devices.at(i)), rate(report.to_device[i]), rate(report.from_device.at(i)),
                   rate(report.to_device_together.at(i)), rate(report.from_device_together.at(i))});
    }
    return table.to_text(2);
}

std::string pair_table(const DoctorReport& report, const Matrix& rates)
{
    std::vector<text::Table::Column> columns{{"to \\ from", Align::left}};
    for (const std::string& device : report.devices) {
        columns.push_back({short_name(device), Align::right});
    }
    text::Table table(std::move(columns));
    for (std::size_t i = 0; i < rates.size(); ++i) {
        std::vector<std::string> cells{short_name(report.devices.at(i))};
        for (std::size_t j = 0; j < report.devices.size(); ++j) {
            cells.push_back(rate(rates[i].at(j)));
        }
        table.add(std::move(cells));
    }
    return table.to_text(2);
}

bool any(const Matrix& rates)
{
    return std::any_of(rates.begin(), rates.end(), [](const auto& row) {
        return std::any_of(row.begin(), row.end(), [](double gbs) { return gbs > 0; });
    });
}

}  // namespace

const char* to_string(Verdict verdict) noexcept
{
    switch (verdict) {
        case Verdict::passed:
            return "ok";
        case Verdict::skipped:
            return "skipped";
        case Verdict::warning:
            return "warning";
        case Verdict::failed:
            return "FAILED";
    }
    return "";
}

int DoctorReport::failures() const
{
    return static_cast<int>(std::count_if(checks.begin(), checks.end(),
                                          [](const DoctorCheck& check) { return check.verdict == Verdict::failed; }));
}

std::string DoctorReport::to_text() const
{
    std::string out = text::wrapped(
        "Self test     ", fmt::format("of {} device{}, {}{}", devices.size(), devices.size() == 1 ? "" : "s", date,
                                      cached ? " (kept; --refresh tests anew)" : ""));
    out += text::wrapped("Machine       ", machine);
    std::string software;
    for (const auto& [name, value] : versions) {
        software += fmt::format("{}{} {}", software.empty() ? "" : ", ", name, value);
    }
    out += text::wrapped("Software      ", software);
    for (std::size_t i = 0; i < devices.size(); ++i) {
        out += fmt::format("{}{}\n", i == 0 ? "Devices       " : "              ", devices[i]);
    }
    if (std::all_of(devices.begin(), devices.end(), [](const std::string& d) { return d.starts_with("host:"); })) {
        out += "              no GPUs: groups of cores stand in for them\n";
    }
    text::Table table({{"Verdict", Align::left}, {"Check", Align::left}, {"Of", Align::left}, {"Found", Align::left}});
    for (const DoctorCheck& check : checks) {
        table.add({to_string(check.verdict), check.name, check.subject, check.detail});
    }
    out += '\n' + table.to_text(0);
    if (!to_device.empty()) {
        out += "\nBetween host and device, GB/s\n" + host_table(*this);
    }
    const std::array<std::pair<const char*, const Matrix*>, 3> tables{{{"a kernel that reads", &read_by_kernel},
                                                                       {"a kernel that writes", &write_by_kernel},
                                                                       {"copies", &copy_engine}}};
    for (const auto& [way, rates] : tables) {
        if (any(*rates)) {
            out += fmt::format("\nBetween devices, {}, GB/s\n{}", way, pair_table(*this, *rates));
        }
    }
    const int broken = failures();
    const auto warnings = std::count_if(checks.begin(), checks.end(),
                                        [](const DoctorCheck& check) { return check.verdict == Verdict::warning; });
    out += fmt::format("\nResult        {}{}\n", broken == 0 ? "nothing is broken" : fmt::format("{} BROKEN", broken),
                       warnings == 0 ? "" : fmt::format(", {} warning{}", warnings, warnings == 1 ? "" : "s"));
    return out;
}

std::string DoctorReport::to_json() const
{
    Json lines = Json::array();
    for (const DoctorCheck& check : checks) {
        lines.push_back({{"name", check.name},
                         {"subject", check.subject},
                         {"verdict", to_string(check.verdict)},
                         {"detail", check.detail}});
    }
    const Json document = {{"schema", "rmsp-doctor-1"},
                           {"date", date},
                           {"cached", cached},
                           {"machine", machine},
                           {"versions", versions},
                           {"devices", devices},
                           {"failures", failures()},
                           {"checks", std::move(lines)},
                           {"gbs",
                            {{"to_device", to_device},
                             {"from_device", from_device},
                             {"to_device_together", to_device_together},
                             {"from_device_together", from_device_together},
                             {"read_by_kernel", read_by_kernel},
                             {"write_by_kernel", write_by_kernel},
                             {"copy_engine", copy_engine}}}};
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

namespace doctor {

DoctorReport parse_doctor_report(const std::string& json)
{
    const Json document = Json::parse(json);
    DoctorReport report;
    document.at("date").get_to(report.date);
    document.at("machine").get_to(report.machine);
    document.at("versions").get_to(report.versions);
    document.at("devices").get_to(report.devices);
    for (const Json& line : document.at("checks")) {
        const auto verdict = line.at("verdict").get<std::string>();
        const auto* const known =
            std::find_if(verdicts.begin(), verdicts.end(), [&](Verdict v) { return verdict == to_string(v); });
        if (known == verdicts.end()) {
            throw Error(ErrorCode::io, fmt::format("\"{}\" is no verdict", verdict));
        }
        report.checks.push_back({line.at("name").get<std::string>(), line.at("subject").get<std::string>(), *known,
                                 line.at("detail").get<std::string>()});
    }
    const Json& gbs = document.at("gbs");
    const std::size_t n = report.devices.size();
    const auto read = [&](const char* name, auto& out) {
        gbs.at(name).get_to(out);
        if (out.size() != n) {
            throw Error(ErrorCode::io, fmt::format("{} has {} entries for {} devices", name, out.size(), n));
        }
    };
    read("to_device", report.to_device);
    read("from_device", report.from_device);
    read("to_device_together", report.to_device_together);
    read("from_device_together", report.from_device_together);
    for (const auto& [name, rates] : {std::pair<const char*, Matrix*>{"read_by_kernel", &report.read_by_kernel},
                                      {"write_by_kernel", &report.write_by_kernel},
                                      {"copy_engine", &report.copy_engine}}) {
        read(name, *rates);
        for (const auto& row : *rates) {
            if (row.size() != n) {
                throw Error(ErrorCode::io,
                            fmt::format("a row of {} has {} entries for {} devices", name, row.size(), n));
            }
        }
    }
    return report;
}

}  // namespace doctor
}  // namespace rmsp
