#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rmsp/spgemm.hpp>
#include <rmsp/version.hpp>

#include "runtime/text.hpp"

namespace rmsp {
namespace {

using Json = nlohmann::json;

std::string context_or(const SpgemmReport& report, const char* key, const std::string& otherwise)
{
    const auto it = report.context.find(key);
    return it == report.context.end() ? otherwise : it->second;
}

/// A line for the machine's phases, a table of devices by phases for the devices'.
std::string phases_text(const std::vector<PhaseTimes>& phases, const SpgemmPlan& plan)
{
    using Align = text::Table::Align;
    std::string whole;
    std::vector<text::Table::Column> columns{{"device", Align::left}};
    std::vector<const PhaseTimes*> each;
    for (const PhaseTimes& phase : phases) {
        if (phase.seconds.size() == plan.shards.size() && plan.shards.size() > 1) {
            each.push_back(&phase);
            columns.push_back({phase.name, Align::right});
        } else if (!phase.seconds.empty()) {
            whole += fmt::format("{}{} {}", whole.empty() ? "" : ", ", phase.name,
                                 text::seconds(*std::max_element(phase.seconds.begin(), phase.seconds.end())));
        }
    }
    std::string out = whole.empty() ? "" : text::wrapped("  ", whole);
    if (!each.empty()) {
        text::Table table(std::move(columns));
        for (std::size_t d = 0; d < plan.shards.size(); ++d) {
            const std::string& name = plan.shards[d].device_name;
            std::vector<std::string> cells{name.substr(0, name.find(' '))};
            for (const PhaseTimes* phase : each) {
                cells.push_back(text::seconds(phase->seconds[d]));
            }
            table.add(std::move(cells));
        }
        out += table.to_text(2);
    }
    return out;
}

Json plan_json(const SpgemmPlan& plan)
{
    Json shards = Json::array();
    for (const SpgemmShardPlan& s : plan.shards) {
        shards.push_back({{"device", s.device},
                          {"name", s.device_name},
                          {"node", s.placement.node},
                          {"kernel", s.kernel},
                          {"first_row", s.first_row},
                          {"end_row", s.end_row},
                          {"a_nonzeros", s.a_nnz},
                          {"products", s.products},
                          {"b_rows", s.b_rows},
                          {"b_nonzeros", s.b_nnz},
                          {"c_nonzeros", s.c_nnz},
                          {"c_nonzeros_most", s.c_nnz_most},
                          {"a_bytes", s.a_bytes},
                          {"b_bytes", s.b_bytes},
                          {"c_bytes", s.c_bytes},
                          {"limit_bytes", s.limit_bytes},
                          {"runs", s.chunks},
                          {"peak_bytes", s.peak_bytes}});
    }
    return {{"rows", plan.rows},
            {"inner", plan.inner},
            {"cols", plan.cols},
            {"a_nonzeros", plan.a_nnz},
            {"b_nonzeros", plan.b_nnz},
            {"products", plan.products},
            {"c_nonzeros", plan.c_nnz},
            {"exact", plan.exact},
            {"precision", plan.precision},
            {"exchange", plan.exchange},
            {"product_imbalance", plan.product_imbalance},
            {"shards", std::move(shards)}};
}

Json seconds_json(const std::vector<PhaseTimes>& phases, double unit)
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

}  // namespace

std::string SpgemmReport::to_text() const
{
    std::string out = text::wrapped("A             ", a);
    out += text::wrapped("B             ", b);
    out += text::wrapped("Machine       ", topology);
    const std::string host = context_or(*this, "host_name", "");
    out += text::wrapped(
        "Library       ",
        fmt::format("librmsp {} (commit {}; {}){}{}{}", context_or(*this, "library_version", version()),
                    context_or(*this, "commit", commit()), context_or(*this, "features", build_features()),
                    host.empty() ? "" : " on ", host, context.count("date") != 0 ? ", " + context.at("date") : ""));
    out += '\n' + plan.to_text();
    const std::string once = phases_text(phases, plan);
    if (!once.empty()) {
        out += "\nPhases\n" + once;
    }
    for (const Measurement& m : measurements) {
        out += fmt::format("\nMeasured      {}\n", m.name);
        out += fmt::format("  product     median {}, min {}, max {}; {} iterations in {}\n",
                           text::seconds(m.median_seconds), text::seconds(m.min_seconds), text::seconds(m.max_seconds),
                           text::grouped(m.iterations), text::seconds(m.wall_seconds));
        out += fmt::format("  speed       {:.2f} GFLOP/s; imbalance products {}, time {}\n", m.gflops(),
                           text::percent(plan.product_imbalance), text::percent(m.time_imbalance));
        out += phases_text(m.phases, plan);
    }
    if (verification.done) {
        out += fmt::format(
            "\nVerified      {}: error {:.2e}, bound {:.2e}{}\n", verification.passed ? "passed" : "FAILED",
            verification.error, verification.bound,
            verification.worst_row >= 0 ? fmt::format(", worst row {}", text::grouped(verification.worst_row)) : "");
    } else if (!measurements.empty() || plan.exact) {
        out += "\nVerified      no\n";
    }
    for (const std::string& note : notes) {
        out += text::wrapped("Note          ", note);
    }
    return out;
}

std::string SpgemmReport::to_json() const
{
    Json about = {{"date", context_or(*this, "date", "")},
                  {"host_name", context_or(*this, "host_name", "")},
                  {"executable", context_or(*this, "executable", "")},
                  {"num_cpus", std::thread::hardware_concurrency()},
                  {"library_version", context_or(*this, "library_version", version())},
                  {"commit", context_or(*this, "commit", commit())},
                  {"features", context_or(*this, "features", build_features())},
                  {"a", a},
                  {"b", b},
                  {"topology", topology},
                  {"plan", plan_json(plan)},
                  {"phase_seconds", seconds_json(phases, 1)},
                  {"notes", notes}};
    for (const auto& [key, value] : context) {
        if (!about.contains(key)) {
            about[key] = value;
        }
    }
    std::int64_t peak = 0;
    for (const SpgemmShardPlan& shard : plan.shards) {
        peak = std::max(peak, shard.peak_bytes);
    }
    constexpr double us = 1e6;
    Json benchmarks = Json::array();
    for (std::size_t i = 0; i < measurements.size(); ++i) {
        const Measurement& m = measurements[i];
        const Verification& v = verification;
        benchmarks.push_back({{"name", m.name},
                              {"family_index", i},
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
                              {"peak_bytes", peak},
                              {"imbalance", {{"products", plan.product_imbalance}, {"time", m.time_imbalance}}},
                              {"phases", seconds_json(m.phases, us)},
                              // null: nothing was compared
                              {"verified", v.done ? Json(v.passed) : Json()},
                              {"error", v.done ? Json(v.error) : Json()},
                              {"error_bound", v.done ? Json(v.bound) : Json()}});
    }
    const Json document = {{"context", std::move(about)}, {"benchmarks", std::move(benchmarks)}};
    // File and host names need not be UTF-8; JSON must be.
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace rmsp
