#include "runtime/report/report_parts.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <rmsp/version.hpp>

#include "core/text.hpp"

namespace rmsp::report {
namespace {

std::string context_or(const Context& context, const std::string& key, const std::string& otherwise)
{
    const auto it = context.find(key);
    return it == context.end() ? otherwise : it->second;
}

/// "cuda:0 NVIDIA H200" -> "cuda:0".
std::string short_name(const std::string& device) { return device.substr(0, device.find(' ')); }

}  // namespace

std::string library_text(const Context& context)
{
    const std::string host = context_or(context, "host_name", "");
    return text::wrapped(
        "Library       ",
        fmt::format("librmsp {} (commit {}; {}){}{}{}", context_or(context, "library_version", version()),
                    context_or(context, "commit", commit()), context_or(context, "features", build_features()),
                    host.empty() ? "" : " on ", host, context.count("date") != 0 ? ", " + context.at("date") : ""));
}

std::string phases_text(const std::vector<PhaseTimes>& phases, const std::vector<std::string>& devices)
{
    std::string whole;
    std::vector<const PhaseTimes*> each;
    for (const PhaseTimes& phase : phases) {
        if (phase.seconds.size() == devices.size() && devices.size() > 1) {
            each.push_back(&phase);
        } else if (!phase.seconds.empty()) {
            whole += fmt::format("{}{} {}", whole.empty() ? "" : ", ", phase.name,
                                 text::seconds(*std::max_element(phase.seconds.begin(), phase.seconds.end())));
        }
    }
    std::string out = whole.empty() ? "" : text::wrapped("  ", whole);
    constexpr std::size_t columns_across = 7;  // of up to 14 characters, beside the device, in the width of a page
    for (std::size_t first = 0; first < each.size(); first += columns_across) {
        const std::size_t end = std::min(each.size(), first + columns_across);
        std::vector<text::Table::Column> columns{{"device", text::Table::Align::left}};
        for (std::size_t p = first; p < end; ++p) {
            columns.push_back({text::shortened(each[p]->name, 12), text::Table::Align::right});
        }
        text::Table table(std::move(columns));
        for (std::size_t d = 0; d < devices.size(); ++d) {
            std::vector<std::string> cells{text::shortened(short_name(devices[d]), 12)};
            for (std::size_t p = first; p < end; ++p) {
                cells.push_back(text::seconds(each[p]->seconds[d]));
            }
            table.add(std::move(cells));
        }
        out += table.to_text(2);
    }
    return out;
}

std::string times_text(const Measurement& m)
{
    return fmt::format("median {}, min {}, max {}; {} iterations in {}\n", text::seconds(m.median_seconds),
                       text::seconds(m.min_seconds), text::seconds(m.max_seconds), text::grouped(m.iterations),
                       text::seconds(m.wall_seconds));
}

std::string verification_text(const Verification& v)
{
    if (!v.done) {
        return "Verified      no\n";
    }
    return fmt::format("Verified      {}: error {:.2e}, bound {:.2e}{}\n",
                       !v.passed         ? "FAILED"
                       : v.overflows > 0 ? "overflow"
                                         : "passed",
                       v.error, v.bound,
                       v.worst_row >= 0 ? fmt::format(", worst row {}", text::grouped(v.worst_row)) : "") +
           (v.overflows > 0 ? fmt::format("  overflow    {} of the results left the range of the precision\n",
                                          text::grouped(v.overflows))
                            : "");
}

std::string notes_text(const std::vector<std::string>& notes)
{
    std::string out;
    for (const std::string& note : notes) {
        out += text::wrapped("Note          ", note);
    }
    return out;
}

Json context_json(const Context& context)
{
    Json out = {{"date", context_or(context, "date", "")},
                {"host_name", context_or(context, "host_name", "")},
                {"executable", context_or(context, "executable", "")},
                {"num_cpus", std::thread::hardware_concurrency()},
                {"library_version", context_or(context, "library_version", version())},
                {"commit", context_or(context, "commit", commit())},
                {"features", context_or(context, "features", build_features())}};
    for (const auto& [key, value] : context) {
        if (!out.contains(key)) {
            out[key] = value;
        }
    }
    return out;
}

Json phases_json(const std::vector<PhaseTimes>& phases, double unit)
{
    Json out = Json::object();
    for (const PhaseTimes& phase : phases) {
        Json times = Json::array();
        for (const double s : phase.seconds) {
            times.push_back(s * unit);
        }
        out[phase.name] = std::move(times);
    }
    return out;
}

Json benchmark_json(const Measurement& m, const Verification& v, std::size_t index)
{
    constexpr double us = 1e6;
    return {{"name", m.name},
            {"family_index", index},
            {"per_family_instance_index", 0},
            {"run_name", m.name},
            {"run_type", "iteration"},
            {"repetitions", 1},
            {"repetition_index", 0},
            {"threads", 1},
            {"iterations", m.iterations},
            {"real_time", m.median_seconds * us},
            {"cpu_time", m.median_seconds * us},
            {"time_unit", "us"},
            {"min_time", m.min_seconds * us},
            {"max_time", m.max_seconds * us},
            {"wall_time", m.wall_seconds * us},
            {"gflops", m.gflops()},
            {"phases", phases_json(m.phases, us)},
            // null: nothing was compared
            {"verified", v.done ? Json(v.passed) : Json()},
            {"error", v.done ? Json(v.error) : Json()},
            {"error_bound", v.done ? Json(v.bound) : Json()},
            {"overflows", v.done ? Json(v.overflows) : Json()}};
}

std::string memory_text(const PreconditionerReport& preconditioner)
{
    return preconditioner.device_bytes > 0 ? fmt::format("  memory      {} of the preconditioner on the devices\n",
                                                         text::bytes(preconditioner.device_bytes))
                                           : "";
}

Json solve_json(std::string name, double seconds, std::vector<PhaseTimes> phases)
{
    Measurement m;
    m.name = std::move(name);
    m.iterations = 1;
    m.median_seconds = m.min_seconds = m.max_seconds = m.wall_seconds = seconds;
    m.phases = std::move(phases);
    Json benchmark = benchmark_json(m, {}, 0);
    // Operations are counted of products alone, not of a method.
    benchmark.erase("gflops");
    return benchmark;
}

std::string document(Json context, Json benchmarks, const std::string& text)
{
    Json& lines = context["text"] = Json::array();
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        lines.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    const Json whole = {
        {"schema", "rmsp-report-1"}, {"context", std::move(context)}, {"benchmarks", std::move(benchmarks)}};
    // File and host names need not be UTF-8; JSON must be.
    return whole.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace rmsp::report
