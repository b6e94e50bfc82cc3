#include "apps/mspmv/page/svg.hpp"

#include <cmath>

#include <fmt/format.h>

namespace rmsp::mspmv {
namespace {

std::string tip_text(std::string_view tip) { return tip.empty() ? "" : fmt::format("<title>{}</title>", escaped(tip)); }

}  // namespace

std::string escaped(std::string_view text)
{
    std::string out;
    for (const char c : text) {
        out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
    }
    return out;
}

std::string seconds_text(double seconds)
{
    const double size = std::abs(seconds);
    return size >= 1      ? fmt::format("{:.3g} s", seconds)
           : size >= 1e-3 ? fmt::format("{:.3g} ms", seconds * 1e3)
                          : fmt::format("{:.3g} us", seconds * 1e6);
}

Svg::Svg(double height, std::string_view title)
    : body_(fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\">"
                        "<title>{}</title>\n",
                        width, height, escaped(title)))
{
}

void Svg::rectangle(double x, double y, double w, double h, std::string_view style, std::string_view tip)
{
    body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\">{}</rect>\n",
                         x, y, w, h, style, tip_text(tip));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view style)
{
    body_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
                         y2, style);
}

void Svg::circle(double x, double y, double radius, std::string_view style, std::string_view tip)
{
    body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" class=\"{}\">{}</circle>\n", x, y, radius,
                         style, tip_text(tip));
}

void Svg::polyline(std::string_view points, std::string_view style)
{
    body_ += fmt::format("<polyline points=\"{}\" class=\"{}\"/>\n", points, style);
}

void Svg::text(double x, double y, std::string_view text, std::string_view anchor, std::string_view style)
{
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y, anchor,
                         style, escaped(text));
}

std::string Svg::finish() const { return body_ + "</svg>\n"; }

}  // namespace rmsp::mspmv
