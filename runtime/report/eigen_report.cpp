#include <rmsp/eigen_report.hpp>

#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"
#include "runtime/report/report_parts.hpp"

namespace rmsp {
namespace {

using report::device_names;
using report::Json;

std::string_view which_text(Spectrum which) { return which == Spectrum::largest ? "largest" : "smallest"; }

std::string result_text(const EigenSummary& r)
{
    std::string out =
        text::wrapped("  outcome     ", fmt::format("{}{} after {} iteration{}",
                                                    r.converged() ? "" : "NOT CONVERGED: ", to_string(r.outcome),
                                                    text::grouped(r.iterations), r.iterations == 1 ? "" : "s"));
    if (!r.reason.empty()) {
        out += text::wrapped("  reason      ", r.reason);
    }
    out += fmt::format("  time        {}\n", text::seconds(r.seconds));
    if (!r.values.empty()) {
        out += fmt::format("\n  {:>4}  {:>22}  {:>16}\n", "", "lambda", "|A v - lambda v|");
    }
    for (std::size_t i = 0; i < r.values.size(); ++i) {
        out += fmt::format("  {:>4}  {:>22.15g}  {:>16.3e}\n", i + 1, r.values[i], r.residuals[i]);
    }
    return out;
}

}  // namespace

std::string EigenReport::to_text() const
{
    std::string out = report::head_text(*this);
    out += fmt::format("\nEigenpairs    {}, preconditioner {}, {}\n", method, preconditioner.name, plan.precision);
    if (preconditioner.device_bytes > 0) {
        out += fmt::format("  memory      {} of the preconditioner on the devices\n",
                           text::bytes(preconditioner.device_bytes));
    }
    out += fmt::format("  asked for   the {} {}, |A v - lambda v| <= {:.3g} |A|{}\n", count, which_text(which),
                       tolerance, solved ? fmt::format(" = {:.3e}", result.target) : "");
    if (solved) {
        out += result_text(result);
    }
    return out + report::notes_text(preconditioner.notes) + report::notes_text(notes);
}

std::string EigenReport::to_json() const
{
    Json about = report::context_json(context);
    about["matrix"] = matrix;
    about["topology"] = topology;
    about["devices"] = device_names(plan);
    about["plan"] = report::plan_json(plan);
    about["setup_seconds"] = report::phases_json(setup, 1);
    about["eigen"] = {{"method", method},
                      {"which", which_text(which)},
                      {"count", count},
                      {"preconditioner", preconditioner.name},
                      {"preconditioner_seconds", preconditioner.seconds},
                      {"preconditioner_device_bytes", preconditioner.device_bytes},
                      {"preconditioner_notes", preconditioner.notes},
                      {"tolerance", tolerance}};
    about["notes"] = notes;
    Json benchmarks = Json::array();
    if (solved) {
        Measurement m;
        m.name = fmt::format("eigen/{}/{}/{}", method, preconditioner.name, plan.precision);
        m.iterations = 1;
        m.median_seconds = m.min_seconds = m.max_seconds = m.wall_seconds = result.seconds;
        Json& benchmark = benchmarks.emplace_back(report::benchmark_json(m, {}, 0));
        // Operations are counted of products alone, not of a method.
        benchmark.erase("gflops");
        benchmark.update({{"outcome", to_string(result.outcome)},
                          {"reason", result.reason},
                          {"solver_iterations", result.iterations},
                          {"target_residual", result.target},
                          {"eigenvalues", result.values},
                          {"residuals", result.residuals}});
    }
    return report::document(std::move(about), std::move(benchmarks), to_text());
}

}  // namespace rmsp
