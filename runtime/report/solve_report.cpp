#include <rmsp/solve_report.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"
#include "runtime/report/report_parts.hpp"
#include "runtime/report/residual_plot.hpp"

namespace rmsp {
namespace {

using report::device_names;
using report::Json;

/// "1.23e-07, 4.56e-09 of |b|".
std::string residual_text(double residual, double rhs_norm)
{
    return fmt::format("{:.3e}", residual) +
           (rhs_norm > 0 ? fmt::format(", {:.3e} of |b|", residual / rhs_norm) : std::string());
}

std::string outcome_text(const SolveResult& r)
{
    return fmt::format("{}{} after {} iteration{}{}", r.converged() ? "" : "NOT CONVERGED: ", to_string(r.outcome),
                       text::grouped(r.iterations), r.iterations == 1 ? "" : "s",
                       r.restarts > 0 ? fmt::format(", begun again {} times", r.restarts) : "");
}

std::string result_text(const SolveReport& of)
{
    const SolveResult& r = of.result;
    std::string out = text::wrapped("  outcome     ", outcome_text(r));
    if (!r.reason.empty()) {
        out += text::wrapped("  reason      ", r.reason);
    }
    out += text::wrapped("  residual    ", residual_text(r.true_residual, r.rhs_norm) + "; by the recurrence " +
                                               residual_text(r.residual, r.rhs_norm));
    if (of.solution_error >= 0) {
        out += fmt::format("  error       {:.3e}, |x - x*| / |x*|\n", of.solution_error);
    }
    out += fmt::format(
        "  time        {}{}\n", text::seconds(r.seconds),
        r.iterations > 0 ? fmt::format("; {} an iteration", text::seconds(of.seconds_per_iteration())) : std::string());
    if (of.bytes_per_second() > 0) {
        const double share = of.share_of_limit();
        out += fmt::format("  bytes       {} an iteration at least, {:.4g} GB/s{}\n",
                           text::bytes(static_cast<std::int64_t>(r.iteration_bytes)), of.bytes_per_second() / 1e9,
                           share > 0 ? fmt::format(", {:.0f} % of the limit", 100 * share) : std::string());
    }
    out += report::phases_text(r.phases, device_names(of.plan));
    const std::string plot = report::residual_plot(r.history, r.rhs_norm, r.target);
    return plot.empty() ? out : out + "\nResidual      log10 |b - A x| / |b|, by the recurrence\n" + plot;
}

/// A line for each level, and what the set-up spent its time on; empty without levels.
std::string hierarchy_text(const PreconditionerReport& of)
{
    if (of.levels.empty()) {
        return {};
    }
    std::string out = fmt::format("  hierarchy   operator complexity {:.2f}, grid complexity {:.2f}, made in {}\n",
                                  of.operator_complexity(), of.grid_complexity(), text::seconds(of.seconds));
    using Align = text::Table::Align;
    text::Table table({{"level", Align::right},
                       {"rows", Align::right},
                       {"nonzeros", Align::right},
                       {"a row", Align::right},
                       {"nonzeros of P", Align::right},
                       {"devices", Align::right},
                       {"memory", Align::right}});
    for (std::size_t i = 0; i < of.levels.size(); ++i) {
        const MultigridLevel& level = of.levels[i];
        const double each = level.rows > 0 ? static_cast<double>(level.nonzeros) / static_cast<double>(level.rows) : 0;
        table.add({std::to_string(i), text::grouped(level.rows), text::grouped(level.nonzeros),
                   fmt::format("{:.1f}", each), text::grouped(level.interpolation_nonzeros),
                   std::to_string(level.devices), text::bytes(level.device_bytes)});
    }
    out += table.to_text(4);
    return out + report::phases_text(of.phases, {});
}

Json candidates_json(const MethodChoice& choice)
{
    Json candidates = Json::array();
    for (const MethodCandidate& c : choice.candidates) {
        candidates.push_back({{"method", c.method},
                              {"seconds", c.seconds},
                              {"product_seconds", c.product_seconds},
                              {"vector_seconds", c.vector_seconds},
                              {"launch_seconds", c.launch_seconds},
                              {"sum_seconds", c.sum_seconds}});
    }
    return candidates;
}

Json hierarchy_json(const PreconditionerReport& of)
{
    Json levels = Json::array();
    for (const MultigridLevel& level : of.levels) {
        levels.push_back({{"rows", level.rows},
                          {"nonzeros", level.nonzeros},
                          {"interpolation_nonzeros", level.interpolation_nonzeros},
                          {"devices", level.devices},
                          {"device_bytes", level.device_bytes}});
    }
    return {{"levels", std::move(levels)},
            {"operator_complexity", of.operator_complexity()},
            {"grid_complexity", of.grid_complexity()},
            {"setup_seconds", report::phases_json(of.phases, 1)}};
}

}  // namespace

double SolveReport::seconds_per_iteration() const
{
    const auto phase = std::find_if(result.phases.begin(), result.phases.end(),
                                    [](const PhaseTimes& p) { return p.name == "iterate" && !p.seconds.empty(); });
    const double seconds = phase != result.phases.end() ? phase->seconds.front() : result.seconds;
    return result.iterations > 0 ? seconds / static_cast<double>(result.iterations) : 0;
}

double SolveReport::bytes_per_second() const
{
    const double seconds = seconds_per_iteration();
    return seconds > 0 ? result.iteration_bytes / seconds : 0;
}

double SolveReport::share_of_limit() const
{
    double limit = 0;
    for (const ShardPlan& shard : plan.shards) {
        if (shard.limit_gbs <= 0) {
            return 0;
        }
        limit += shard.limit_gbs * 1e9;
    }
    return limit > 0 ? bytes_per_second() / limit : 0;
}

std::string SolveReport::to_text() const
{
    std::string out = report::head_text(*this);
    out += fmt::format("\nSolver        {}, preconditioner {}, {}\n", method, preconditioner.name, plan.precision);
    if (!choice.reason.empty()) {
        out += text::wrapped("  chosen      ", choice.reason);
    }
    out += report::memory_text(preconditioner);
    out += hierarchy_text(preconditioner);
    out += text::wrapped("  b           ", rhs);
    out += fmt::format("  asked for   |b - A x| <= {}{}\n",
                       absolute_tolerance > 0 ? fmt::format("max({:.3g} |b|, {:.3g})", tolerance, absolute_tolerance)
                                              : fmt::format("{:.3g} |b|", tolerance),
                       solved ? fmt::format(" = {:.3e}", result.target) : "");
    if (solved) {
        out += result_text(*this);
    }
    return out + report::notes_text(preconditioner.notes) + report::notes_text(notes);
}

std::string SolveReport::to_json() const
{
    Json about = report::solve_context_json(*this);
    about["solver"] = {{"method", method},
                       {"preconditioner", preconditioner.name},
                       {"preconditioner_seconds", preconditioner.seconds},
                       {"preconditioner_device_bytes", preconditioner.device_bytes},
                       {"preconditioner_notes", preconditioner.notes},
                       {"rhs", rhs},
                       {"tolerance", tolerance},
                       {"absolute_tolerance", absolute_tolerance}};
    if (!choice.reason.empty()) {
        about["solver"]["method_reason"] = choice.reason;
        about["solver"]["method_candidates"] = candidates_json(choice);
    }
    if (!preconditioner.levels.empty()) {
        about["multigrid"] = hierarchy_json(preconditioner);
    }
    about["notes"] = notes;
    Json benchmarks = Json::array();
    if (solved) {
        Json& benchmark = benchmarks.emplace_back(report::solve_json(
            fmt::format("solve/{}/{}/{}", method, preconditioner.name, plan.precision), result.seconds, result.phases));
        benchmark.update({{"outcome", to_string(result.outcome)},
                          {"reason", result.reason},
                          {"solver_iterations", result.iterations},
                          {"iteration_time", seconds_per_iteration() * 1e6},
                          {"iteration_bytes", result.iteration_bytes},
                          {"share_of_limit", share_of_limit()},
                          {"rhs_norm", result.rhs_norm},
                          {"target_residual", result.target},
                          {"residual", result.residual},
                          {"true_residual", result.true_residual},
                          {"normal_residual", result.normal_residual},
                          {"restarts", result.restarts},
                          // null: the solution is not known
                          {"solution_error", solution_error >= 0 ? Json(solution_error) : Json()},
                          {"residual_history", result.history}});
    }
    return report::document(std::move(about), std::move(benchmarks), to_text());
}

}  // namespace rmsp
