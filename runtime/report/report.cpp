#include <rmsp/report.hpp>

#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"
#include "runtime/report/report_parts.hpp"

namespace rmsp {
namespace {

using report::Json;

std::vector<std::string> device_names(const Plan& plan)
{
    std::vector<std::string> names;
    for (const ShardPlan& shard : plan.shards) {
        names.push_back(shard.device_name);
    }
    return names;
}

std::string measurement_text(const Measurement& m, const Report& of)
{
    std::string out = text::wrapped(
        "Measured      ", fmt::format("{}, vectors {}{}", m.name, m.layout, m.cold ? ", caches flushed" : ""));
    out += "  apply       " + report::times_text(m);
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
    out += fmt::format("\n  imbalance   nonzeros {}, time {}\n", text::percent(of.plan.nonzero_imbalance),
                       text::percent(m.time_imbalance));
    return out + report::phases_text(m.phases, device_names(of.plan));
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
                          {"exchange_seconds", s.exchange_seconds},
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

Json context_json(const Report& of)
{
    Json context = report::context_json(of.context);
    context["matrix"] = of.matrix;
    context["topology"] = of.topology;
    context["devices"] = device_names(of.plan);
    context["plan"] = plan_json(of.plan);
    context["setup_seconds"] = report::phases_json(of.setup, 1);
    context["notes"] = of.notes;
    return context;
}

Json benchmark_json(const Measurement& m, const Report& of, std::size_t index)
{
    Json out = report::benchmark_json(m, of.verification, index);
    out.update({{"bytes_per_second", m.bytes_per_second()},
                {"raw_bytes_per_second", m.raw_bytes_per_second()},
                {"limit_gbs", m.limit_gbs},
                {"limit_before_gbs", m.limit_before_gbs},
                {"limit_after_gbs", m.limit_after_gbs},
                {"limit_source", m.limit_source},
                {"share_of_limit", m.share_of_limit()},
                {"imbalance", {{"nonzeros", of.plan.nonzero_imbalance}, {"time", m.time_imbalance}}},
                {"layout", m.layout},
                {"mode", of.plan.mode},
                {"cache", m.cold ? "cold" : "warm"}});
    return out;
}

}  // namespace

std::string Report::to_text() const
{
    std::string out = text::wrapped("Matrix        ", matrix);
    out += text::wrapped("Machine       ", topology);
    out += report::library_text(context);
    out += '\n' + plan.to_text();
    const std::string setup_phases = report::phases_text(setup, device_names(plan));
    if (!setup_phases.empty()) {
        out += "\nSet-up\n" + setup_phases;
    }
    for (const Measurement& measurement : measurements) {
        out += '\n' + measurement_text(measurement, *this);
    }
    if (!measurements.empty()) {
        out += '\n' + report::verification_text(verification);
    }
    return out + report::notes_text(notes);
}

std::string Report::to_json() const
{
    Json benchmarks = Json::array();
    for (std::size_t i = 0; i < measurements.size(); ++i) {
        benchmarks.push_back(benchmark_json(measurements[i], *this, i));
    }
    return report::document(context_json(*this), std::move(benchmarks));
}

}  // namespace rmsp
