#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rmsp/spgemm.hpp>

#include "core/text.hpp"
#include "runtime/report/report_parts.hpp"

namespace rmsp {
namespace {

using report::Json;

std::vector<std::string> device_names(const SpgemmPlan& plan)
{
    std::vector<std::string> names;
    for (const SpgemmShardPlan& shard : plan.shards) {
        names.push_back(shard.device_name);
    }
    return names;
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
            {"links", report::links_json(plan.links)},
            {"shards", std::move(shards)}};
}

}  // namespace

std::string SpgemmReport::to_text() const
{
    std::string out = text::wrapped("A             ", a);
    out += text::wrapped("B             ", b);
    out += text::wrapped("Machine       ", topology);
    out += report::library_text(context);
    out += '\n' + plan.to_text();
    const std::string once = report::phases_text(phases, device_names(plan));
    if (!once.empty()) {
        out += "\nPhases\n" + once;
    }
    for (const Measurement& m : measurements) {
        out += fmt::format("\nMeasured      {}\n", m.name);
        out += "  product     " + report::times_text(m);
        out += fmt::format("  speed       {:.2f} GFLOP/s; imbalance products {}, time {}\n", m.gflops(),
                           text::percent(plan.product_imbalance), text::percent(m.time_imbalance));
        out += report::phases_text(m.phases, device_names(plan));
    }
    if (verification.done || !measurements.empty() || plan.exact) {
        out += '\n' + report::verification_text(verification);
    }
    return out + report::notes_text(notes);
}

std::string SpgemmReport::to_json() const
{
    Json about = report::context_json(context);
    about["a"] = a;
    about["b"] = b;
    about["topology"] = topology;
    about["plan"] = plan_json(plan);
    about["phase_seconds"] = report::phases_json(phases, 1);
    about["notes"] = notes;
    std::int64_t peak = 0;
    for (const SpgemmShardPlan& shard : plan.shards) {
        peak = std::max(peak, shard.peak_bytes);
    }
    Json benchmarks = Json::array();
    for (std::size_t i = 0; i < measurements.size(); ++i) {
        const Measurement& m = measurements[i];
        Json& benchmark = benchmarks.emplace_back(report::benchmark_json(m, verification, i));
        benchmark["peak_bytes"] = peak;
        benchmark["imbalance"] = {{"products", plan.product_imbalance}, {"time", m.time_imbalance}};
    }
    return report::document(std::move(about), std::move(benchmarks), to_text());
}

}  // namespace rmsp
