#include "apps/mspmv/page/page.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "apps/mspmv/page/html.hpp"
#include "apps/mspmv/page/svg.hpp"

namespace rmsp::mspmv {
namespace {

/// What a reader looks for first.
html::Facts facts_of(const Json& context, const Json& benchmarks)
{
    const Json& plan = child_of(context, "plan");
    html::Facts facts;
    if (benchmarks.empty()) {
        if (number_of(plan, "predicted_seconds") > 0) {
            facts.emplace_back(seconds_text(number_of(plan, "predicted_seconds")), "predicted for an apply");
        }
        facts.emplace_back("not run", "a plan only");
    } else if (const Json& b = benchmarks.front(); b.contains("outcome")) {
        facts.emplace_back(text_of(b, "outcome"), "outcome of the solve");
        facts.emplace_back(fmt::format("{:.0f}", number_of(b, "solver_iterations")), "iterations");
        facts.emplace_back(seconds_text(number_of(b, "real_time") * 1e-6), "the whole solve");
        facts.emplace_back(seconds_text(number_of(b, "iteration_time") * 1e-6), "an iteration");
        facts.emplace_back(fmt::format("{:.2e}", number_of(b, "true_residual")), "norm of b - A x");
    } else {
        facts.emplace_back(seconds_text(number_of(b, "real_time") * 1e-6), "median time");
        facts.emplace_back(fmt::format("{:.4g}", number_of(b, "gflops")), "GFLOP/s");
        if (number_of(b, "share_of_limit") > 0) {
            facts.emplace_back(fmt::format("{:.1f} %", 100 * number_of(b, "share_of_limit")),
                               fmt::format("of {:.4g} GB/s", number_of(b, "limit_gbs")));
        }
        const auto verified = b.find("verified");
        const bool compared = verified != b.end() && verified->is_boolean();
        facts.emplace_back(
            !compared               ? "not verified"
            : verified->get<bool>() ? "passed"
                                    : "FAILED",
            compared ? fmt::format("error {:.2e}, bound {:.2e}", number_of(b, "error"), number_of(b, "error_bound"))
                     : "");
    }
    const double entries = number_of(plan, plan.contains("nonzeros") ? "nonzeros" : "a_nonzeros");
    facts.emplace_back(html::grouped(entries),
                       fmt::format("nonzeros in {} rows", html::grouped(number_of(plan, "rows"))));
    return facts;
}

/// Of several measurements, which the facts and most drawings are not about.
std::string measurements_of(const Json& benchmarks)
{
    std::vector<std::vector<std::string>> rows;
    for (const Json& b : benchmarks) {
        rows.push_back({text_of(b, "name"), seconds_text(number_of(b, "real_time") * 1e-6),
                        fmt::format("{:.4g}", number_of(b, "gflops"))});
    }
    return rows.size() > 1 ? html::table({"name", "median", "GFLOP/s"}, rows) : "";
}

void require_report(const Json& report, const std::string& name)
{
    if (!child_of(report, "context").contains("plan") || !child_of(report, "benchmarks").is_array()) {
        throw Error(ErrorCode::io,
                    fmt::format("{}: not a report of mspmv run, spgemm, solve or eigen (written by --json)", name));
    }
}

}  // namespace

std::string source_line(const Json& context)
{
    return html::source_line(text_of(context, "library_version"), text_of(context, "commit"), text_of(context, "date"),
                             text_of(context, "host_name"));
}

Json read_report(const std::string& path)
{
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (!in.is_open() || in.bad() || (text.empty() && !in.eof())) {
        throw Error(ErrorCode::io, fmt::format("{}: cannot read the report: {}", path, std::strerror(errno)));
    }
    try {
        Json report = Json::parse(text);
        require_report(report, path);
        return report;
    } catch (const Json::parse_error& e) {
        throw Error(ErrorCode::io, fmt::format("{}: not JSON: byte {}", path, e.byte));
    }
}

std::string report_text(const Json& report, const std::string& name)
{
    std::string text;
    for (const Json& line : child_of(report["context"], "text")) {
        text += line.is_string() ? line.get<std::string>() + '\n' : "";
    }
    if (text.empty()) {
        throw Error(ErrorCode::io, fmt::format("{}: the report has no context.text", name));
    }
    return text;
}

std::string report_page(const Json& report, const std::string& name)
{
    const std::string text = report_text(report, name);
    const Json& context = report["context"];
    const Json& benchmarks = child_of(report, "benchmarks");
    const Json first = benchmarks.empty() ? Json::object() : benchmarks.front();
    const std::string a = text_of(context, "a");
    const std::string matrix = a.empty() ? text_of(context, "matrix") : a + " times " + text_of(context, "b");
    std::vector<std::string> notes;
    for (const Json& note : child_of(context, "notes")) {
        notes.push_back(note.is_string() ? note.get<std::string>() : note.dump());
    }
    return html::document(
        fmt::format("{}: {}", benchmarks.empty() ? "plan" : text_of(first, "name"), matrix),
        {text_of(context, "topology"), source_line(context)},
        html::facts(facts_of(context, benchmarks)) +
            html::columns(html::section("Machine and shares of the work", machine_drawing(context)) +
                          html::section("Phases of each device", timeline_drawing(context, first)) +
                          html::section("Roofline", roofline_drawing(context, benchmarks)) +
                          html::section("Balance", balance_drawing(context, benchmarks)) +
                          html::section("Measurements", measurements_of(benchmarks)) +
                          html::section("Residual, relative to the right-hand side", residual_drawing(first)) +
                          html::section("Predicted time of an apply", prediction_drawing(context))) +
            html::section("Notes", html::list(notes)) +
            fmt::format("<details open><summary>The whole report</summary>\n<pre>{}</pre></details>\n", escaped(text)));
}

}  // namespace rmsp::mspmv
