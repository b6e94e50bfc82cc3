#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Drawings of figures, whatever they are of; "" where there is nothing to draw. Styles are classes of page/html.cpp.
namespace rmsp::mspmv {

struct Bar {
    std::string label;
    double length;
    std::string value;
    std::string style = "c0";
};

/// Horizontal bars below their labels, the longest as wide as there is room.
std::string bar_chart(std::string_view title, const std::vector<Bar>& bars);

struct RooflinePoint {
    std::string name;
    double intensity;  ///< operations a byte
    double gflops;
};

/// Both axes logarithmic.
/// \param limit_gbs      what the memory delivers; no drawing without it
/// \param peak_gflops    0: not known
/// \param measured       GFLOP/s of a product whose bytes are not known: a line across; 0: none
std::string roofline_chart(const std::vector<RooflinePoint>& points, double limit_gbs, double peak_gflops = 0,
                           double measured = 0);

struct Curve {
    std::string name;
    std::vector<std::pair<double, double>> points;
};
/// On logarithmic axes.
std::string curve_chart(std::string_view title, std::string_view x_title, std::string_view y_title,
                        const std::vector<Curve>& curves);
/// The same over numbers of devices, beside y = x.
std::string scaling_chart(const std::vector<Curve>& curves);

/// One drawing of several, below each other, as a file of its own. Each has a heading; `lines` stand at the end.
std::string stacked(std::string_view title, const std::vector<std::pair<std::string, std::string>>& drawings,
                    const std::vector<std::string>& lines);

}  // namespace rmsp::mspmv
