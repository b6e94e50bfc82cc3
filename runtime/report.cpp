#include <rmsp/report.hpp>

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <rmsp/version.hpp>

#include "runtime/text.hpp"

namespace rmsp {
namespace {

using Json = nlohmann::ordered_json;

std::string context_or(const Report& report, const std::string& key, const std::string& otherwise)
{
    const auto it = report.context.find(key);
    return it == report.context.end() ? otherwise : it->second;
}

/// "cuda:0 NVIDIA H200" -> "cuda:0".
std::string short_name(const ShardPlan& shard) { return shard.device_name.substr(0, shard.device_name.find(' ')); }

/// Phases of the whole machine on one line, those with a time for each device in tables of devices by phases.
std::string phases_text(const std::vector<PhaseTimes>& phases, const std::vector<ShardPlan>& shards)
{
    std::string whole;
    std::vector<const PhaseTimes*> each;
    for (const PhaseTimes& phase : phases) {
        if (phase.seconds.size() == shards.size() && shards.size() > 1) {
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
        for (std::size_t d = 0; d < shards.size(); ++d) {
            std::vector<std::string> cells{text::shortened(short_name(shards[d]), 12)};
            for (std::size_t p = first; p < end; ++p) {
                cells.push_back(text::seconds(each[p]->seconds[d]));
            }
            table.add(std::move(cells));
        }
        out += table.to_text(2);
    }
    return out;
}

std::string measurement_text(const Measurement& m, const Report& report)
{
    std::string out = text::wrapped(
        "Measured      ", fmt::format("{}, vectors {}{}", m.name, m.layout, m.cold ? ", caches flushed" : ""));
    out += fmt::format("  apply       median {}, min {}, max {}; {} iterations in {}\n",
                       text::seconds(m.median_seconds), text::seconds(m.min_seconds), text::seconds(m.max_seconds),
                       text::grouped(m.iterations), text::seconds(m.wall_seconds));
    out += fmt::format("  speed       {:.2f} GFLOP/s, {:.2f} GB/s", m.gflops(), m.bytes_per_second() * 1e-9);
    if (m.limit_gbs > 0) {
        out += fmt::format(", {} of {:.1f} GB/s ({})", text::percent(m.share_of_limit()), m.limit_gbs, m.limit_source);
    }
    if (m.limit_before_gbs > 0) {
        out += fmt::format("\n  links       {:.1f} GB/s before the timed applies, {:.1f} after", m.limit_before_gbs,
                           m.limit_after_gbs);
    }
    if (m.raw_bytes > 0) {
        out += fmt::format("\n  encoded     {:.2f} GB/s of the matrix as it is in host memory, {:.2f} times the link's",
                           m.raw_bytes_per_second() * 1e-9, m.bytes > 0 ? m.raw_bytes / m.bytes : 0.0);
    }
    out += fmt::format("\n  imbalance   nonzeros {}, time {}\n", text::percent(report.plan.nonzero_imbalance),
                       text::percent(m.time_imbalance));
    return out + phases_text(m.phases, report.plan.shards);
}

std::string verification_text(const Verification& v)
{
    if (!v.done) {
        return "Verified      no\n";
    }
    return fmt::format("Verified      {}: error {:.2e}, bound {:.2e}{}\n", v.passed ? "passed" : "FAILED", v.error,
                       v.bound, v.worst_row >= 0 ? fmt::format(", worst row {}", text::grouped(v.worst_row)) : "");
}

Json plan_json(const Plan& plan)
{
    Json shards = Json::array();
    for (const ShardPlan& s : plan.shards) {
        Json candidates = Json::array();
        for (const KernelCandidate& c : s.candidates) {
            candidates.push_back({{"kernel", c.kernel},
                                  {"own_format", c.own_format},
                                  {"bytes", c.bytes},
                                  {"predicted_seconds", c.predicted_seconds},
                                  {"measured_seconds", c.measured_seconds},
                                  {"prepare_seconds", c.prepare_seconds}});
        }
        shards.push_back({{"device", s.device},
                          {"name", s.device_name},
                          {"node", s.placement.node},
                          {"cpus", s.placement.cpus},
                          {"placement", s.placement.reason},
                          {"kernel", s.kernel},
                          {"kernel_reason", s.kernel_reason},
                          {"kernel_candidates", std::move(candidates)},
                          {"break_even_applies", s.break_even_applies},
                          {"start_row", s.part.start_row},
                          {"end_row", s.part.end_row},
                          {"start_flag", s.part.start_flag},
                          {"start_idx", s.part.start_idx},
                          {"end_idx", s.part.end_idx},
                          {"rows", s.part.rows()},
                          {"nonzeros", s.part.nnz()},
                          {"matrix_bytes", s.matrix_bytes},
                          {"vector_bytes", s.vector_bytes},
                          {"apply_bytes", s.apply_bytes},
                          {"halo_entries", s.halo_entries},
                          {"limit_gbs", s.limit_gbs},
                          {"predicted_seconds", s.predicted_seconds}});
    }
    return {{"rows", plan.rows},
            {"cols", plan.cols},
            {"nonzeros", plan.nnz},
            {"format", to_string(plan.format)},
            {"order", to_string(plan.order)},
            {"precision", plan.precision},
            {"mode", plan.mode},
            {"merge", plan.merge},
            {"merge_bytes", plan.merge_bytes},
            {"merge_seconds", plan.merge_seconds},
            {"transport", plan.transport},
            {"transport_reason", plan.transport_reason},
            {"exchange", plan.exchange},
            {"devices", plan.devices},
            {"devices_reason", plan.devices_reason},
            {"nonzero_imbalance", plan.nonzero_imbalance},
            {"first_time_imbalance", plan.first_time_imbalance},
            {"time_imbalance", plan.time_imbalance},
            {"moves", plan.moves},
            {"shards", std::move(shards)}};
}

Json context_json(const Report& report)
{
    Json context = {{"date", context_or(report, "date", "")},
                    {"host_name", context_or(report, "host_name", "")},
                    {"executable", context_or(report, "executable", "")},
                    {"num_cpus", std::thread::hardware_concurrency()},
                    {"library_version", context_or(report, "library_version", version())},
                    {"commit", context_or(report, "commit", commit())},
                    {"features", context_or(report, "features", build_features())},
                    {"matrix", report.matrix},
                    {"topology", report.topology}};
    for (const auto& [key, value] : report.context) {
        if (!context.contains(key)) {
            context[key] = value;
        }
    }
    Json devices = Json::array();
    for (const ShardPlan& shard : report.plan.shards) {
        devices.push_back(shard.device_name);
    }
    context["devices"] = std::move(devices);
    context["plan"] = plan_json(report.plan);
    Json setup = Json::object();
    for (const PhaseTimes& phase : report.setup) {
        setup[phase.name] = phase.seconds;
    }
    context["setup_seconds"] = std::move(setup);
    context["notes"] = report.notes;
    return context;
}

Json benchmark_json(const Measurement& m, const Report& report, std::size_t index)
{
    constexpr double us = 1e6;
    Json phases = Json::object();
    for (const PhaseTimes& phase : m.phases) {
        Json times = Json::array();
        for (const double s : phase.seconds) {
            times.push_back(s * us);
        }
        phases[phase.name] = std::move(times);
    }
    const Verification& v = report.verification;
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
            {"bytes_per_second", m.bytes_per_second()},
            {"raw_bytes_per_second", m.raw_bytes_per_second()},
            {"limit_gbs", m.limit_gbs},
            {"limit_before_gbs", m.limit_before_gbs},
            {"limit_after_gbs", m.limit_after_gbs},
            {"limit_source", m.limit_source},
            {"share_of_limit", m.share_of_limit()},
            {"imbalance", {{"nonzeros", report.plan.nonzero_imbalance}, {"time", m.time_imbalance}}},
            {"layout", m.layout},
            {"mode", report.plan.mode},
            {"cache", m.cold ? "cold" : "warm"},
            {"phases", std::move(phases)},
            // null: nothing was compared
            {"verified", v.done ? Json(v.passed) : Json()},
            {"error", v.done ? Json(v.error) : Json()},
            {"error_bound", v.done ? Json(v.bound) : Json()}};
}

}  // namespace

std::string Report::to_text() const
{
    std::string out = text::wrapped("Matrix        ", matrix);
    out += text::wrapped("Machine       ", topology);
    const std::string host = context_or(*this, "host_name", "");
    out += text::wrapped(
        "Library       ",
        fmt::format("librmsp {} (commit {}; {}){}{}{}", context_or(*this, "library_version", version()),
                    context_or(*this, "commit", commit()), context_or(*this, "features", build_features()),
                    host.empty() ? "" : " on ", host, context.count("date") != 0 ? ", " + context.at("date") : ""));
    out += '\n' + plan.to_text();
    const std::string setup_phases = phases_text(setup, plan.shards);
    if (!setup_phases.empty()) {
        out += "\nSet-up\n" + setup_phases;
    }
    for (const Measurement& measurement : measurements) {
        out += '\n' + measurement_text(measurement, *this);
    }
    if (!measurements.empty()) {
        out += '\n' + verification_text(verification);
    }
    for (const std::string& note : notes) {
        out += text::wrapped("Note          ", note);
    }
    return out;
}

std::string Report::to_json() const
{
    Json benchmarks = Json::array();
    for (std::size_t i = 0; i < measurements.size(); ++i) {
        benchmarks.push_back(benchmark_json(measurements[i], *this, i));
    }
    const Json document = {{"context", context_json(*this)}, {"benchmarks", std::move(benchmarks)}};
    // File and host names need not be UTF-8; JSON must be.
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace rmsp
