#include "apps/mspmv/html.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace rmsp::mspmv::html {
namespace {

constexpr std::string_view style = R"(
:root { color-scheme: light dark; --ink: #1c2430; --faint: #c3cad4; --paper: #f4f6f9; --card: #fff; --accent: #1f6feb;
  --second: #d9822b; --third: #2e9d68 }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9f0; --faint: #4a5463; --paper: #12161c; --card: #1b212a;
  --accent: #6ea8fe; --second: #f0a455; --third: #5fca94 } }
* { box-sizing: border-box }
body { margin: 0; padding: 1.5rem 1rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif }
main { max-width: 74rem; margin: auto; display: grid; gap: 1rem; grid-template-columns: repeat(2, minmax(0, 1fr)) }
h1 { grid-column: 1 / -1; margin: 0; font-size: 1.5rem; overflow-wrap: anywhere }
h2 { margin: 0 0 .5rem; font-size: 1.05rem }
section { background: var(--card); border-radius: .5rem; padding: 1rem; overflow-x: auto }
section.wide { grid-column: 1 / -1 }
svg { display: block; width: 100%; height: auto; max-width: 36rem; margin: auto; font-size: 13px }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .2rem .5rem; border-bottom: 1px solid var(--faint); font-weight: normal }
th:first-child, td:first-child { text-align: left; padding-left: 0 }
thead th { font-weight: 600 }
ul { margin: 0; padding-left: 1.2rem }
p { margin: .5rem 0 0 }
.bar { display: grid; grid-template-columns: 11rem 1fr; gap: .1rem .6rem; margin: .35rem 0; align-items: center }
.bar b { display: block; height: 1.1rem; border-radius: .2rem; min-width: 2px }
.bar i { font-style: normal; grid-column: 2; font-size: .85rem }
@media (max-width: 760px) { main { grid-template-columns: minmax(0, 1fr) } .bar { grid-template-columns: 1fr }
  .bar i { grid-column: 1 } body { padding: 1rem .5rem } }
)";

}  // namespace

std::string escaped(std::string_view text)
{
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

std::string page(std::string_view title, std::string_view body)
{
    return fmt::format(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\">\n<title>{0}</title>\n<style>{1}</style>\n"
        "</head>\n<body>\n<main>\n<h1>{0}</h1>\n{2}</main>\n</body>\n</html>\n",
        escaped(title), style, body);
}

std::string section(std::string_view title, std::string_view content)
{
    return fmt::format("<section>\n<h2>{}</h2>\n{}\n</section>\n", escaped(title), content);
}

std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows)
{
    std::string out = "<table>\n";
    if (!head.empty()) {
        out += "<thead><tr>";
        for (const std::string& cell : head) {
            out += fmt::format("<th>{}</th>", escaped(cell));
        }
        out += "</tr></thead>\n";
    }
    out += "<tbody>\n";
    for (const auto& row : rows) {
        out += "<tr>";
        for (const std::string& cell : row) {
            out += fmt::format("<td>{}</td>", escaped(cell));
        }
        out += "</tr>\n";
    }
    return out + "</tbody></table>";
}

std::string bars(const std::vector<Bar>& bars)
{
    double longest = 0;
    for (const Bar& bar : bars) {
        longest = std::max(longest, bar.length);
    }
    std::string out;
    for (const Bar& bar : bars) {
        out += fmt::format(
            "<div class=\"bar\"><span>{}</span><b style=\"width: {:.2f}%; background: {}\"></b><i>{}</i></div>\n",
            escaped(bar.label), longest > 0 ? 100 * bar.length / longest : 0, bar.colour, escaped(bar.value));
    }
    return out;
}

Svg::Svg(double width, double height, std::string_view what)
    : out_(
          fmt::format("<svg viewBox=\"0 0 {:g} {:g}\" role=\"img\" aria-label=\"{}\">\n", width, height, escaped(what)))
{
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view colour, double width)
{
    out_ += fmt::format(
        "<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" stroke=\"{}\" stroke-width=\"{:g}\"/>\n", x1, y1,
        x2, y2, colour, width);
}

void Svg::rect(double x, double y, double width, double height, std::string_view colour, double opacity)
{
    out_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"{}/>\n", x, y,
                        width, height, colour, opacity < 1 ? fmt::format(" opacity=\"{:.2g}\"", opacity) : "");
}

void Svg::circle(double x, double y, double radius, std::string_view colour)
{
    out_ += fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:g}\" fill=\"{}\"/>\n", x, y, radius, colour);
}

void Svg::text(double x, double y, std::string_view text, std::string_view anchor)
{
    out_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", x, y, anchor, ink,
                        escaped(text));
}

}  // namespace rmsp::mspmv::html
