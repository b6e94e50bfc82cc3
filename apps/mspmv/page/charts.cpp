#include "apps/mspmv/page/charts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "apps/mspmv/page/html.hpp"
#include "apps/mspmv/page/svg.hpp"
#include "apps/mspmv/terminal.hpp"

namespace rmsp::mspmv {
namespace {

std::string colour_of(std::size_t i) { return fmt::format("c{}", i % 8); }

/// 1, 2 and 5 times powers of ten, of which the first is at most `least`, the last at least `most`.
std::vector<double> ticks(double least, double most)
{
    std::vector<double> all;
    for (int e = static_cast<int>(std::floor(std::log10(least))); e <= static_cast<int>(std::ceil(std::log10(most)));
         ++e) {
        for (const double m : {1.0, 2.0, 5.0}) {
            all.push_back(m * std::pow(10.0, e));
        }
    }
    // A rounding of the logarithm or of the power leaves no value outside.
    constexpr double slack = 1 + 1e-9;
    const auto first = std::find_if(all.rbegin(), all.rend(), [&](double t) { return t <= least * slack; });
    const auto last = std::find_if(all.begin(), all.end(), [&](double t) { return t * slack >= most; });
    std::vector<double> kept(first == all.rend() ? all.begin() : first.base() - 1,
                             last == all.end() ? all.end() : last + 1);
    while (kept.size() < 2) {
        kept.push_back(kept.back() * 10);
    }
    return kept;
}

/// The frame of a drawing with logarithmic axes.
class LogAxes {
public:
    LogAxes(const std::vector<double>& x_ticks, const std::vector<double>& y_ticks)
        : x_ticks_(x_ticks), y_ticks_(y_ticks)
    {
    }
    double x(double value) const
    {
        return left + (right - left) * std::log(value / x_first()) / std::log(x_last() / x_first());
    }
    double y(double value) const
    {
        return bottom - (bottom - top) * std::log(value / y_first()) / std::log(y_last() / y_first());
    }
    double x_first() const { return x_ticks_.front(); }
    double x_last() const { return x_ticks_.back(); }
    double y_first() const { return y_ticks_.front(); }
    double y_last() const { return y_ticks_.back(); }

    void draw(Svg& svg, std::string_view x_title, std::string_view y_title) const
    {
        svg.text(left - 38, top - 8, y_title, "start", "quiet");
        for (const double tick : y_ticks_) {
            svg.line(left, y(tick), right, y(tick), "grid");
            // Labels that would touch are left out: those of powers of ten come first.
            if (y_ticks_.size() <= 8 || is_power_of_ten(tick)) {
                svg.text(left - 5, y(tick) + 4, tick_text(tick), "end", "quiet");
            }
        }
        for (const double tick : x_ticks_) {
            svg.line(x(tick), top, x(tick), bottom, "grid");
            if (x_ticks_.size() <= 8 || is_power_of_ten(tick)) {
                svg.text(x(tick), bottom + 14, tick_text(tick), tick == x_last() ? "end" : "middle", "quiet");
            }
        }
        svg.line(left, bottom, right, bottom, "axis");
        svg.line(left, top, left, bottom, "axis");
        svg.text((left + right) / 2, bottom + 28, x_title, "middle", "quiet");
    }

    static constexpr double left = 44;
    static constexpr double right = Svg::width - 12;
    static constexpr double top = 20;
    static constexpr double bottom = 200;

private:
    static std::string tick_text(double value)
    {
        return value >= 1000 && value < 1e7 ? html::grouped(value) : fmt::format("{:g}", value);
    }

    static bool is_power_of_ten(double value)
    {
        const double e = std::log10(value);
        return std::abs(e - std::round(e)) < 1e-6;
    }

    std::vector<double> x_ticks_;
    std::vector<double> y_ticks_;
};

constexpr double legend_line = 16;

/// As much of a name as there is room for.
std::string elided(const std::string& name, std::size_t letters)
{
    return name.size() <= letters ? name : name.substr(0, letters - 3) + "...";
}

/// How many names stand beside each other.
std::size_t legend_columns(const std::vector<std::string>& names)
{
    const bool all_short = std::ranges::all_of(names, [](const std::string& name) { return name.size() <= 7; });
    return all_short ? 5 : 1;
}

double legend_height(const std::vector<std::string>& names)
{
    const std::size_t columns = legend_columns(names);
    return legend_line * static_cast<double>((names.size() + columns - 1) / columns);
}

void draw_legend(Svg& svg, double top, const std::vector<std::string>& names)
{
    const std::size_t columns = legend_columns(names);
    for (std::size_t i = 0; i < names.size(); ++i) {
        const double x = Svg::width / static_cast<double>(columns) * static_cast<double>(i % columns);
        const double y = top + legend_line * static_cast<double>(i / columns);
        svg.circle(x + 15, y - 4, 5, colour_of(i));
        svg.text(x + 26, y, elided(names[i], 52));
    }
}

/// \param tip  of a point, behind the curve's name
template <class Tip>
void draw_curves(Svg& svg, const LogAxes& axes, const std::vector<Curve>& curves, double radius, const Tip& tip)
{
    for (std::size_t i = 0; i < curves.size(); ++i) {
        const auto& points = curves[i].points;
        for (std::size_t p = 0; p < points.size(); ++p) {
            const auto& [x, y] = points[p];
            if (p > 0) {
                svg.line(axes.x(points[p - 1].first), axes.y(points[p - 1].second), axes.x(x), axes.y(y),
                         fmt::format("l{}", i % 8));
            }
            svg.circle(axes.x(x), axes.y(y), radius, colour_of(i), fmt::format("{}: {}", curves[i].name, tip(x, y)));
        }
    }
}

}  // namespace

std::string bar_chart(std::string_view title, const std::vector<Bar>& bars)
{
    double longest = 0;
    for (const Bar& bar : bars) {
        longest = std::max(longest, bar.length);
    }
    if (!(longest > 0)) {
        return "";
    }
    constexpr double each = 36;
    Svg svg(each * static_cast<double>(bars.size()), title);
    double y = 0;
    for (const Bar& bar : bars) {
        svg.text(0, y + 11, elided(bar.label, 42));
        svg.text(Svg::width, y + 11, bar.value, "end", "quiet");
        svg.rectangle(0, y + 15, std::max(0.8, Svg::width * bar.length / longest), 12, bar.style,
                      fmt::format("{}: {}", bar.label, bar.value));
        y += each;
    }
    return svg.finish();
}

std::string roofline_chart(const std::vector<RooflinePoint>& points, double limit_gbs, double peak_gflops,
                           double measured)
{
    if (points.empty() || !(limit_gbs > 0)) {
        return "";
    }
    const auto roof = [&](double intensity) {
        return peak_gflops > 0 ? std::min(intensity * limit_gbs, peak_gflops) : intensity * limit_gbs;
    };
    double first = INFINITY;
    double last = 0;
    double low = measured > 0 ? measured : INFINITY;
    double high = measured;
    for (const RooflinePoint& p : points) {
        first = std::min(first, p.intensity / 1.5);
        last = std::max(last, p.intensity * 1.5);
        low = std::min({low, p.gflops, roof(p.intensity)});
        high = std::max({high, p.gflops, roof(p.intensity)});
    }
    // The bend of the roof is shown where it is near.
    if (peak_gflops > 0 && peak_gflops / limit_gbs < 10 * last) {
        last = std::max(last, 2 * peak_gflops / limit_gbs);
        high = std::max(high, peak_gflops);
    }
    const LogAxes axes(ticks(first, last), ticks(low, high));
    const double below = LogAxes::bottom + 50;
    Svg svg(below + legend_line * (static_cast<double>(points.size()) + (measured > 0 ? 1 : 0)), "roofline");
    axes.draw(svg, "operations a byte",
              fmt::format("GFLOP/s; the roof: {:.4g} GB/s{}", limit_gbs,
                          peak_gflops > 0 ? fmt::format(", {:.4g} GFLOP/s", peak_gflops) : ""));
    const double enter = std::max(axes.x_first(), axes.y_first() / limit_gbs);
    const double edge = std::min(axes.x_last(), axes.y_last() / limit_gbs);
    const double bend = peak_gflops > 0 ? std::min(edge, peak_gflops / limit_gbs) : edge;
    if (enter < bend) {
        svg.line(axes.x(enter), axes.y(enter * limit_gbs), axes.x(bend), axes.y(bend * limit_gbs), "roof");
    }
    if (peak_gflops > 0 && bend < axes.x_last() && peak_gflops <= axes.y_last()) {
        svg.line(axes.x(std::max(bend, axes.x_first())), axes.y(peak_gflops), LogAxes::right, axes.y(peak_gflops),
                 "roof");
    }
    std::vector<std::string> names;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const RooflinePoint& p = points[i];
        names.push_back(fmt::format("{}: {:.4g} GFLOP/s", p.name, p.gflops));
        // Points at one place show as rings.
        const double radius = 4 + 1.5 * static_cast<double>(std::min<std::size_t>(points.size() - 1 - i, 4));
        svg.circle(axes.x(p.intensity), axes.y(p.gflops), radius, colour_of(i), names.back());
    }
    draw_legend(svg, below, names);
    if (measured > 0) {
        const double y = below + legend_line * static_cast<double>(points.size());
        svg.line(LogAxes::left, axes.y(measured), LogAxes::right, axes.y(measured), "mark");
        svg.line(8, y - 4, 22, y - 4, "mark");
        svg.text(26, y, fmt::format("measured: {:.4g} GFLOP/s", measured));
    }
    return svg.finish();
}

std::string scaling_chart(const std::vector<Curve>& curves)
{
    double most_x = 1;
    double least_y = 1;
    double most_y = 1;
    std::vector<std::string> names;
    for (const Curve& curve : curves) {
        names.push_back(curve.name);
        for (const auto& [x, y] : curve.points) {
            most_x = std::max(most_x, x);
            least_y = std::min(least_y, y);
            most_y = std::max(most_y, y);
        }
    }
    if (!(most_x > 1) || !(least_y > 0)) {
        return "";
    }
    std::vector<double> devices{1};
    while (devices.back() < most_x) {
        devices.push_back(2 * devices.back());
    }
    std::vector<double> speed_ups{1};
    while (speed_ups.back() < std::max(most_x, most_y)) {
        speed_ups.push_back(2 * speed_ups.back());
    }
    while (speed_ups.front() > least_y) {
        speed_ups.insert(speed_ups.begin(), speed_ups.front() / 2);
    }
    const LogAxes axes(devices, speed_ups);
    const double below = LogAxes::bottom + 50;
    Svg svg(below + legend_height(names), "speed-up over devices");
    axes.draw(svg, "devices; dashed: as many times as fast", "speed-up");
    const double end = std::min(axes.x_last(), axes.y_last());
    svg.line(axes.x(1), axes.y(1), axes.x(end), axes.y(end), "mark");
    draw_curves(svg, axes, curves, 5, [](double x, double y) { return fmt::format("{:.2f} times on {:g}", y, x); });
    draw_legend(svg, below, names);
    return svg.finish();
}

std::string curve_chart(std::string_view title, std::string_view x_title, std::string_view y_title,
                        const std::vector<Curve>& curves)
{
    std::vector<std::string> names;
    std::vector<double> x_values;
    std::vector<double> y_values;
    for (const Curve& curve : curves) {
        names.push_back(curve.name);
        for (const auto& [x, y] : curve.points) {
            x_values.push_back(x);
            y_values.push_back(y);
        }
    }
    if (x_values.empty() || !(std::ranges::min(x_values) > 0) || !(std::ranges::min(y_values) > 0)) {
        return "";
    }
    const LogAxes axes(ticks(std::ranges::min(x_values), std::ranges::max(x_values)),
                       ticks(std::ranges::min(y_values), std::ranges::max(y_values)));
    const double below = LogAxes::bottom + 50;
    Svg svg(below + legend_height(names), title);
    axes.draw(svg, x_title, y_title);
    draw_curves(svg, axes, curves, 2.5, [](double x, double y) { return fmt::format("{:.4g} at {:.4g}", y, x); });
    draw_legend(svg, below, names);
    return svg.finish();
}

std::string stacked(std::string_view title, const std::vector<std::pair<std::string, std::string>>& drawings,
                    const std::vector<std::string>& lines)
{
    constexpr double margin = 12;
    constexpr std::size_t columns = 62;  // of the small letters, in the width of a drawing
    double y = margin + 14;
    std::string out =
        fmt::format("<text x=\"{:g}\" y=\"{:g}\" class=\"heading\">{}</text>\n", margin, y, escaped(title));
    y += 14;
    const std::string_view of_box = "viewBox=\"0 0 360 ";
    for (const auto& [heading, drawing] : drawings) {
        const std::size_t at = drawing.find(of_box);
        if (at == std::string::npos) {
            continue;
        }
        const double height = std::strtod(drawing.c_str() + at + of_box.size(), nullptr);
        out +=
            fmt::format("<text x=\"{:g}\" y=\"{:g}\" class=\"heading\">{}</text>\n", margin, y + 14, escaped(heading));
        out += fmt::format("<svg x=\"{:g}\" y=\"{:g}\" width=\"{:g}\" height=\"{:g}\"{}", margin, y + 24, Svg::width,
                           height, drawing.substr(4));
        y += height + 46;
    }
    for (const std::string& line : lines) {
        std::string rest = fitted(line, columns);
        while (!rest.empty()) {
            const std::size_t end = std::min(rest.find('\n'), rest.size());
            y += 13;
            out += fmt::format("<text x=\"{:g}\" y=\"{:g}\" class=\"quiet\">{}</text>\n", margin, y,
                               escaped(rest.substr(0, end)));
            rest.erase(0, end + 1);
        }
    }
    const double width = Svg::width + 2 * margin;
    const double height = y + margin;
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:.0f}\" width=\"{2:g}\" height=\"{3:.0f}\">\n"
        "<title>{4}</title>\n<style>{5}</style>\n<rect width=\"{0:g}\" height=\"{1:.0f}\" "
        "class=\"sheet\"/>\n{6}</svg>\n",
        width, height, 2 * width, 2 * height, escaped(title), html::drawing_style(), out);
}

}  // namespace rmsp::mspmv
