#pragma once

#include <string>
#include <string_view>

/// Drawings as text. Colours are classes, which the page's style sheet defines for light, dark and paper.
namespace rmsp::mspmv {

/// `text` as it may stand in HTML and in quoted attributes.
std::string escaped(std::string_view text);

/// 1.5e-6 -> "1.50 us".
std::string seconds_text(double seconds);

/// One drawing, 360 units wide, so that its letters have their own size on a phone.
class Svg {
public:
    static constexpr double width = 360;

    /// \param title  what a reader who does not see the drawing is told
    Svg(double height, std::string_view title);

    void rectangle(double x, double y, double w, double h, std::string_view style, std::string_view tip = {});
    void line(double x1, double y1, double x2, double y2, std::string_view style);
    void circle(double x, double y, double radius, std::string_view style, std::string_view tip = {});
    /// \param points  "x,y x,y ..."
    void polyline(std::string_view points, std::string_view style);
    /// \param anchor  start, middle or end
    void text(double x, double y, std::string_view text, std::string_view anchor = "start",
              std::string_view style = "label");
    std::string finish() const;

private:
    std::string body_;
};

}  // namespace rmsp::mspmv
