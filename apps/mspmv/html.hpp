#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Pages that show by themselves what a command found: one file, no scripts, nothing loaded.
namespace rmsp::mspmv::html {

/// Names of the colours in the page's style; SVG takes them as fill or stroke.
inline constexpr std::string_view ink = "var(--ink)";
inline constexpr std::string_view faint = "var(--faint)";
inline constexpr std::string_view accent = "var(--accent)";
inline constexpr std::string_view second = "var(--second)";
inline constexpr std::string_view third = "var(--third)";

/// Text with what HTML gives a meaning replaced.
std::string escaped(std::string_view text);

/// A whole document.
std::string page(std::string_view title, std::string_view body);

/// A framed part of a page; `content` is HTML.
std::string section(std::string_view title, std::string_view content);

/// Cells are text; the first column is aligned left, the others right.
std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows);

/// Horizontal bars, the longest as wide as there is room.
struct Bar {
    std::string label;
    double length;
    std::string value;
    std::string_view colour;
};
std::string bars(const std::vector<Bar>& bars);

/// A drawing of fixed proportions that is as wide as there is room. Points from the upper left corner.
class Svg {
public:
    Svg(double width, double height, std::string_view what);
    void line(double x1, double y1, double x2, double y2, std::string_view colour, double width = 1);
    void rect(double x, double y, double width, double height, std::string_view colour, double opacity = 1);
    void circle(double x, double y, double radius, std::string_view colour);
    /// anchor: start, middle or end.
    void text(double x, double y, std::string_view text, std::string_view anchor = "start");
    std::string to_string() const { return out_ + "</svg>"; }

private:
    std::string out_;
};

}  // namespace rmsp::mspmv::html
