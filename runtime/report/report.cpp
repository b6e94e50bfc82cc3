#include <rmsp/report.hpp>

#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"
#include "runtime/report/report_parts.hpp"

namespace rmsp {
namespace {

using report::device_names;
using report::Json;

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

Json context_json(const Report& of)
{
    Json context = report::context_json(of.context);
    context["matrix"] = of.matrix;
    context["topology"] = of.topology;
    context["devices"] = device_names(of.plan);
    context["plan"] = report::plan_json(of.plan);
    context["setup_seconds"] = report::phases_json(of.setup, 1);
    context["notes"] = of.notes;
    context["peak_gflops"] = of.peak_gflops;
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
    std::string out = report::head_text(*this);
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
    return report::document(context_json(*this), std::move(benchmarks), to_text());
}

}  // namespace rmsp
