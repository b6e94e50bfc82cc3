#include "apps/mspmv/page/page.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "apps/mspmv/page/svg.hpp"

namespace rmsp::mspmv {
namespace {

constexpr const char* style = R"(
:root { color-scheme: light dark; --ink: #1c2430; --quiet: #5b6675; --paper: #ffffff; --tint: #f2f5f8; --line: #c9d1da;
  --c0: #2563a8; --c1: #d9822b; --c2: #3d8f5f; --c3: #8a5aa8; --c4: #b5423c; --c5: #3a9aa8; --c6: #8c7a2e; --c7: #6b7785; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ef; --quiet: #9aa6b4; --paper: #14181d; --tint: #1e252d;
  --line: #3a4550; --c0: #6aa5e8; --c1: #eba45a; --c2: #6cc08e; --c3: #b894d4; --c4: #e07f79; --c5: #6cc5d2; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 76rem; font: 16px/1.45 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 1.4rem; margin: 0 0 .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 0 0 .5rem; }
p { margin: .2rem 0; color: var(--quiet); overflow-wrap: anywhere; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .6rem; margin: 1rem 0; }
.facts div { background: var(--tint); border-radius: 6px; padding: .5rem .7rem; }
.facts b { display: block; font-size: 1.15rem; overflow-wrap: anywhere; }
.facts span { font-size: .85rem; color: var(--quiet); }
.drawings { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 1.2rem; }
section { min-width: 0; break-inside: avoid; }
svg { display: block; width: 100%; max-width: 27rem; height: auto; }
svg text { font: 11px system-ui, sans-serif; fill: var(--ink); }
svg .quiet { fill: var(--quiet); font-size: 10px; }
svg .node { fill: var(--tint); stroke: var(--line); }
svg .device { fill: var(--paper); stroke: var(--c0); stroke-width: 1.5; }
svg .link { stroke: var(--c2); stroke-width: 2; }
svg .axis { stroke: var(--quiet); }
svg .grid { stroke: var(--line); stroke-width: .6; }
svg .mark { stroke: var(--c4); stroke-dasharray: 4 3; }
svg .roof { stroke: var(--c4); stroke-width: 1.5; }
svg .curve { fill: none; stroke: var(--c0); stroke-width: 1.5; }
svg .c0 { fill: var(--c0); } svg .c1 { fill: var(--c1); } svg .c2 { fill: var(--c2); } svg .c3 { fill: var(--c3); }
svg .c4 { fill: var(--c4); } svg .c5 { fill: var(--c5); } svg .c6 { fill: var(--c6); } svg .c7 { fill: var(--c7); }
ul { padding-left: 1.2rem; }
pre { overflow-x: auto; background: var(--tint); border-radius: 6px; padding: .7rem; font-size: 12px; line-height: 1.35; }
summary { cursor: pointer; font-weight: 600; margin: 1.2rem 0 .4rem; }
@media print { :root { color-scheme: light; --ink: #000; --quiet: #444; --paper: #fff; --tint: #f4f4f4; --line: #bbb;
    --c0: #2563a8; --c1: #d9822b; --c2: #3d8f5f; --c3: #8a5aa8; --c4: #b5423c; --c5: #3a9aa8; }
  body { font-size: 11px; max-width: none; padding: 0; } .drawings { grid-template-columns: 1fr 1fr; }
  pre { font-size: 7.5px; overflow: visible; white-space: pre-wrap; } * { print-color-adjust: exact; } }
)";

/// 26463592 -> "26,463,592".
std::string grouped(double count)
{
    std::string digits = fmt::format("{:.0f}", count);
    for (std::size_t i = digits.size(); i > 3;) {
        i -= 3;
        digits.insert(i, ",");
    }
    return digits;
}

using Facts = std::vector<std::pair<std::string, std::string>>;

/// What a reader looks for first.
Facts facts_of(const Json& context, const Json& benchmarks)
{
    const Json& plan = child_of(context, "plan");
    Facts facts;
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
    facts.emplace_back(grouped(entries), fmt::format("nonzeros in {} rows", grouped(number_of(plan, "rows"))));
    return facts;
}

std::string section(const char* title, const std::string& drawing)
{
    return drawing.empty() ? "" : fmt::format("<section><h2>{}</h2>\n{}</section>\n", title, drawing);
}

void require_report(const Json& report, const std::string& name)
{
    if (!child_of(report, "context").contains("plan") || !child_of(report, "benchmarks").is_array()) {
        throw Error(ErrorCode::io,
                    fmt::format("{}: not a report of mspmv run, spgemm or solve (written by --json)", name));
    }
}

}  // namespace

std::string report_text(const Json& report, const std::string& name)
{
    require_report(report, name);
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
    const std::string title = benchmarks.empty() ? "plan" : text_of(first, "name");
    std::string out = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
        "content=\"width=device-width, initial-scale=1\">\n<title>{0}: "
        "{1}</title>\n<style>{2}</style>\n</head>\n<body>\n"
        "<h1>{0}: {1}</h1>\n<p>{3}</p>\n<p>librmsp {4}, commit {5}, {6}{7}{8}</p>\n",
        escaped(title), escaped(matrix), style, escaped(text_of(context, "topology")),
        escaped(text_of(context, "library_version")), escaped(text_of(context, "commit")),
        escaped(text_of(context, "date")), text_of(context, "host_name").empty() ? "" : " on ",
        escaped(text_of(context, "host_name")));
    out += "<div class=\"facts\">\n";
    for (const auto& [value, meaning] : facts_of(context, benchmarks)) {
        out += fmt::format("<div><b>{}</b><span>{}</span></div>\n", escaped(value), escaped(meaning));
    }
    out += "</div>\n<div class=\"drawings\">\n";
    out += section("Machine and shares of the work", machine_drawing(context));
    out += section("Phases of each device", timeline_drawing(context, first));
    out += section("Roofline", roofline_drawing(benchmarks));
    out += section("Balance", balance_drawing(context, benchmarks));
    out += section("Residual, relative to the right-hand side", residual_drawing(first));
    out += section("Predicted time of an apply", prediction_drawing(context));
    out += "</div>\n";
    if (const Json& notes = child_of(context, "notes"); !notes.empty()) {
        out += "<h2>Notes</h2>\n<ul>\n";
        for (const Json& note : notes) {
            out += note.is_string() ? fmt::format("<li>{}</li>\n", escaped(note.get<std::string>())) : "";
        }
        out += "</ul>\n";
    }
    return out +
           fmt::format("<details open><summary>The whole report</summary>\n<pre>{}</pre></details>\n</body>\n</html>\n",
                       escaped(text));
}

}  // namespace rmsp::mspmv
