#include "apps/mspmv/page/html.hpp"

#include <fmt/format.h>

#include "apps/mspmv/page/svg.hpp"

namespace rmsp::mspmv::html {
namespace {

constexpr std::string_view of_drawings = R"(
:root { --ink: #1c2430; --quiet: #5b6675; --paper: #ffffff; --tint: #f2f5f8; --line: #c9d1da;
  --c0: #2563a8; --c1: #d9822b; --c2: #3d8f5f; --c3: #8a5aa8; --c4: #b5423c; --c5: #3a9aa8; --c6: #8c7a2e;
  --c7: #6b7785; }
svg text { font: 11px system-ui, sans-serif; fill: var(--ink); }
svg .quiet { fill: var(--quiet); font-size: 10px; }
svg .heading { font-size: 13px; font-weight: 600; }
svg .node { fill: var(--tint); stroke: var(--line); }
svg .device { fill: var(--paper); stroke: var(--c0); stroke-width: 1.5; }
svg .sheet { fill: var(--paper); }
svg .ground { fill: var(--tint); }
svg .link { fill: none; stroke-width: 2; }
svg .axis { stroke: var(--quiet); }
svg .grid { stroke: var(--line); stroke-width: .6; }
svg .mark { stroke: var(--c4); stroke-dasharray: 4 3; }
svg .roof { stroke: var(--c4); stroke-width: 1.5; }
svg .curve { fill: none; stroke: var(--c0); stroke-width: 1.5; }
svg .l0 { stroke: var(--c0); } svg .l1 { stroke: var(--c1); } svg .l2 { stroke: var(--c2); }
svg .l3 { stroke: var(--c3); }
svg .l4 { stroke: var(--c4); } svg .l5 { stroke: var(--c5); } svg .l6 { stroke: var(--c6); }
svg .l7 { stroke: var(--c7); }
svg .c0 { fill: var(--c0); } svg .c1 { fill: var(--c1); } svg .c2 { fill: var(--c2); } svg .c3 { fill: var(--c3); }
svg .c4 { fill: var(--c4); } svg .c5 { fill: var(--c5); } svg .c6 { fill: var(--c6); } svg .c7 { fill: var(--c7); }
svg .s1, svg .s2, svg .s3, svg .s4 { fill: var(--c0); }
svg .s1 { opacity: .3; } svg .s2 { opacity: .55; } svg .s3 { opacity: .8; }
)";

constexpr std::string_view of_pages = R"(
:root { color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ef; --quiet: #9aa6b4; --paper: #14181d; --tint: #1e252d;
  --line: #3a4550; --c0: #6aa5e8; --c1: #eba45a; --c2: #6cc08e; --c3: #b894d4; --c4: #e07f79;
  --c5: #6cc5d2; --c6: #c9b458;
  --c7: #9aa6b4; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 76rem; font: 16px/1.45 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 1.4rem; margin: 0 0 .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 0 0 .5rem; }
p { margin: .2rem 0; color: var(--quiet); overflow-wrap: anywhere; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .6rem; margin: 1rem 0; }
.facts div { min-width: 0; background: var(--tint); border-radius: 6px; padding: .5rem .7rem; }
.facts b { display: block; font-size: 1.15rem; overflow-wrap: anywhere; }
.facts span { font-size: .85rem; color: var(--quiet); overflow-wrap: anywhere; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 1.2rem;
  margin: 1rem 0; }
section { min-width: 0; margin: 1rem 0; break-inside: avoid; overflow-x: auto; }
.columns section { margin: 0; }
.columns p { font-size: .85rem; }
svg { display: block; width: 100%; max-width: 27rem; height: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; vertical-align: top; padding: .2rem 0 .2rem .7rem; border-bottom: 1px solid var(--line);
  font-weight: normal; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td:not(:first-child) { white-space: nowrap; }
thead th { font-weight: 600; }
ul { padding-left: 1.2rem; margin: .2rem 0; }
pre { overflow-x: auto; background: var(--tint); border-radius: 6px; padding: .7rem; font-size: 12px;
  line-height: 1.35; }
summary { cursor: pointer; font-weight: 600; margin: 1.2rem 0 .4rem; }
@media print { :root { color-scheme: light; --ink: #000; --quiet: #444; --paper: #fff; --tint: #f4f4f4; --line: #bbb;
    --c0: #2563a8; --c1: #d9822b; --c2: #3d8f5f; --c3: #8a5aa8; --c4: #b5423c; --c5: #3a9aa8; --c6: #8c7a2e;
    --c7: #6b7785; }
  html { font-size: 11.5px; } body { font-size: 1rem; max-width: none; padding: 0; }
  .columns { grid-template-columns: 1fr 1fr; } section { overflow: visible; }
  svg { max-width: none; }
  pre { font-size: 9px; overflow: visible; white-space: pre-wrap; } * { print-color-adjust: exact; } }
)";

std::string row(const std::vector<std::string>& cells, std::string_view tag)
{
    std::string out = "<tr>";
    for (const std::string& cell : cells) {
        out += fmt::format("<{0}>{1}</{0}>", tag, escaped(cell));
    }
    return out + "</tr>\n";
}

}  // namespace

std::string_view drawing_style() { return of_drawings; }

std::string document(std::string_view title, const std::vector<std::string>& lines, std::string_view body)
{
    std::string out = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
        "content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n<style>{1}{2}</style>\n</head>\n<body>\n"
        "<h1>{0}</h1>\n",
        escaped(title), of_drawings, of_pages);
    for (const std::string& line : lines) {
        out += fmt::format("<p>{}</p>\n", escaped(line));
    }
    return out + fmt::format("{}</body>\n</html>\n", body);
}

std::string facts(const Facts& facts)
{
    std::string out = "<div class=\"facts\">\n";
    for (const auto& [value, meaning] : facts) {
        out += fmt::format("<div><b>{}</b><span>{}</span></div>\n", escaped(value), escaped(meaning));
    }
    return out + "</div>\n";
}

std::string columns(std::string_view sections) { return fmt::format("<div class=\"columns\">\n{}</div>\n", sections); }

std::string section(std::string_view title, std::string_view content)
{
    return content.empty() ? "" : fmt::format("<section><h2>{}</h2>\n{}</section>\n", escaped(title), content);
}

std::string list(const std::vector<std::string>& items)
{
    std::string out;
    for (const std::string& item : items) {
        out += fmt::format("<li>{}</li>\n", escaped(item));
    }
    return out.empty() ? "" : fmt::format("<ul>\n{}</ul>\n", out);
}

std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows)
{
    std::string out = "<table>\n";
    out += head.empty() ? "" : fmt::format("<thead>{}</thead>\n", row(head, "th"));
    out += "<tbody>\n";
    for (const auto& cells : rows) {
        out += row(cells, "td");
    }
    return out + "</tbody></table>\n";
}

std::string grouped(double count)
{
    std::string digits = fmt::format("{:.0f}", count);
    for (std::size_t i = digits.size(); i > 3;) {
        i -= 3;
        digits.insert(i, ",");
    }
    return digits;
}

std::string source_line(std::string_view version, std::string_view commit, std::string_view date, std::string_view host)
{
    return fmt::format("librmsp {}, commit {}, {}{}{}", version, commit, date, host.empty() ? "" : " on ", host);
}

}  // namespace rmsp::mspmv::html
