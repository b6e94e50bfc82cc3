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
    out += report::memory_text(preconditioner);
    out += fmt::format("  asked for   the {} {}, |A v - lambda v| <= {:.3g} |A|{}\n", count, which_text(which),
                       tolerance, solved ? fmt::format(" = {:.3e}", result.target) : "");
    if (solved) {
        out += result_text(result);
    }
    return out + report::notes_text(preconditioner.notes) + report::notes_text(notes);
}

std::string EigenReport::to_json() const
{
    Json about = report::solve_context_json(*this);
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
        Json& benchmark = benchmarks.emplace_back(report::solve_json(
            fmt::format("eigen/{}/{}/{}", method, preconditioner.name, plan.precision), result.seconds));
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
