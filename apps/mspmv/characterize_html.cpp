#include "apps/mspmv/characterize_html.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/mspmv/html.hpp"

namespace rmsp::mspmv {
namespace {

std::string count_text(double n)
{
    for (const auto& [unit, name] : {std::pair{1e9, " G"}, {1e6, " M"}, {1e3, " k"}}) {
        if (n >= unit) {
            return fmt::format("{:.3g}{}", n / unit, name);
        }
    }
    return fmt::format("{:g}", n);
}

std::string bytes_text(double bytes)
{
    for (const auto& [unit, name] : {std::pair{0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}}) {
        if (bytes >= unit) {
            return fmt::format("{:.3g} {}", bytes / unit, name);
        }
    }
    return fmt::format("{:g} B", bytes);
}

std::string ratio_text(std::int64_t bytes, const Characterization& c)
{
    const auto lower = static_cast<double>(c.lower().bytes);
    return fmt::format("{}, {:.2f} times the lower bound", bytes_text(static_cast<double>(bytes)),
                       lower > 0 ? static_cast<double>(bytes) / lower : 0);
}

std::string bounds_section(const Characterization& c)
{
    std::vector<html::Bar> bars;
    const auto add = [&](const char* label, std::int64_t bytes, std::string_view colour) {
        bars.push_back({label, static_cast<double>(bytes), ratio_text(bytes, c), colour});
    };
    add("Lower bound", c.lower().bytes, html::third);
    add("Upper bound", c.upper.moved.bytes, html::accent);
    if (c.cache.done) {
        add("By rows, simulated cache", c.cache.bytes(), html::second);
        add("By rows, no cache", c.cache.uncached_bytes, html::faint);
    }
    const std::string partitioner =
        c.upper.partitioner.empty() ? "" : fmt::format("; partitioner: {}", c.upper.partitioner);
    return html::section(
        "Bytes moved",
        html::bars(bars) + fmt::format("<p>Fast memory of {}, lines of {} B. Upper bound: {}, {} parts{}.</p>",
                                       bytes_text(static_cast<double>(c.fast_bytes)), c.line_bytes,
                                       html::escaped(c.upper.method), c.upper.parts, html::escaped(partitioner)));
}

std::string facts_section(const Characterization& c)
{
    std::vector<std::vector<std::string>> rows{
        {"Operation", c.product ? "C = A B, " + c.precision : "y = A x, " + c.precision},
        {"Rows x columns of A", fmt::format("{} x {}", c.rows, c.inner)},
        {"Nonzeros of A", fmt::format("{}", c.a_nnz)},
        {"Longest row, mean, deviation",
         fmt::format("{}, {:.1f}, {:.1f}", c.row_lengths.longest_row, c.row_lengths.mean, c.row_lengths.deviation)},
        {"Empty rows", fmt::format("{}", c.row_lengths.empty_rows)}};
    if (c.product) {
        rows.push_back({"Nonzeros of B", fmt::format("{}", c.b_nnz)});
        rows.push_back({"Nonzeros of C", fmt::format("{}", c.c_nnz)});
        rows.push_back({"Multiplies for each of C", fmt::format("{:.2f}", c.compression())});
    }
    rows.push_back({"Operations", count_text(c.flops())});
    rows.push_back({"Operations for each word, at most", fmt::format("{:.3f}", c.intensity_per_word())});
    return html::section("The operation", html::table({}, rows));
}

/// Both axes logarithmic, in powers of ten that hold everything.
class Axes {
public:
    Axes(double x_least, double x_most, double y_least, double y_most)
        : x0_(std::floor(std::log10(x_least))),
          x1_(std::max(std::ceil(std::log10(x_most)), x0_ + 1)),
          y0_(std::floor(std::log10(y_least))),
          y1_(std::max(std::ceil(std::log10(y_most)), y0_ + 1))
    {
    }
    double x(double value) const { return left + (std::log10(value) - x0_) / (x1_ - x0_) * (right - left); }
    double y(double value) const { return bottom - (std::log10(value) - y0_) / (y1_ - y0_) * (bottom - top); }
    double x_first() const { return std::pow(10.0, x0_); }
    double x_last() const { return std::pow(10.0, x1_); }
    double y_first() const { return std::pow(10.0, y0_); }
    double y_last() const { return std::pow(10.0, y1_); }

    void draw(html::Svg& svg, const char* x_title, const char* y_title) const
    {
        for (double e = x0_; e <= x1_; ++e) {
            const double v = std::pow(10.0, e);
            svg.line(x(v), top, x(v), bottom, html::faint, 0.5);
            svg.text(x(v), bottom + 16, fmt::format("{:g}", v), "middle");
        }
        for (double e = y0_; e <= y1_; ++e) {
            const double v = std::pow(10.0, e);
            svg.line(left, y(v), right, y(v), html::faint, 0.5);
            svg.text(left - 6, y(v) + 4, fmt::format("{:g}", v), "end");
        }
        svg.text((left + right) / 2, bottom + 34, x_title, "middle");
        svg.text(left - 40, top - 10, y_title);
    }

    static constexpr double left = 54;
    static constexpr double right = 440;
    static constexpr double top = 30;
    static constexpr double bottom = 250;

private:
    double x0_;
    double x1_;
    double y0_;
    double y1_;
};

std::string roofline_section(const CharacterizeReport& r)
{
    const Characterization& c = r.found;
    if (r.limit_gbs <= 0 || c.multiplies == 0) {
        return "";
    }
    struct Point {
        const char* name;
        double intensity;
        std::string_view colour;
    };
    std::vector<Point> points{{"lower bound", c.flops() / static_cast<double>(c.lower().bytes), html::third},
                              {"upper bound", c.flops() / static_cast<double>(c.upper.moved.bytes), html::accent}};
    if (c.cache.done) {
        points.push_back({"by rows, simulated cache", c.flops() / static_cast<double>(c.cache.bytes()), html::second});
    }
    const double measured = r.seconds > 0 ? c.flops() / r.seconds * 1e-9 : 0;
    const auto roof = [&](double intensity) {
        const double memory = intensity * r.limit_gbs;
        return r.peak_gflops > 0 ? std::min(memory, r.peak_gflops) : memory;
    };
    double least = points.front().intensity;
    double most = least;
    for (const Point& p : points) {
        least = std::min(least, p.intensity);
        most = std::max(most, p.intensity);
    }
    if (r.peak_gflops > 0) {
        most = std::max(most, 2 * r.peak_gflops / r.limit_gbs);
    }
    least /= 2;
    most *= 2;
    const double lowest = measured > 0 ? std::min(measured / 2, roof(least)) : roof(least);
    const Axes axes(least, most, lowest, std::max(roof(most), measured));
    html::Svg svg(460, 356, "Roofline: operations a second over operations for each byte moved");
    axes.draw(svg, "operations for each byte moved", "GFLOP/s");
    // Where the memory's line enters and leaves the frame.
    const double first = std::max(axes.x_first(), axes.y_first() / r.limit_gbs);
    const double last = std::min(axes.x_last(), axes.y_last() / r.limit_gbs);
    const double knee = r.peak_gflops > 0 ? std::clamp(r.peak_gflops / r.limit_gbs, first, last) : last;
    svg.line(axes.x(first), axes.y(first * r.limit_gbs), axes.x(knee), axes.y(knee * r.limit_gbs), html::ink, 2);
    if (r.peak_gflops > 0) {
        svg.line(axes.x(knee), axes.y(r.peak_gflops), Axes::right, axes.y(r.peak_gflops), html::ink, 2);
    }
    for (const Point& p : points) {
        svg.line(axes.x(p.intensity), axes.y(roof(p.intensity)), axes.x(p.intensity), Axes::bottom, p.colour, 1.5);
        svg.circle(axes.x(p.intensity), axes.y(roof(p.intensity)), 5, p.colour);
        if (measured > 0) {
            svg.rect(axes.x(p.intensity) - 4, axes.y(measured) - 4, 8, 8, p.colour);
        }
    }
    double x = 12;
    double y = 306;
    for (const Point& p : points) {
        svg.circle(x, y - 4, 5, p.colour);
        svg.text(x + 10, y, p.name);
        x += 115;
    }
    svg.text(12, 328, fmt::format("line: {:.1f} GB/s; dots: what it allows", r.limit_gbs));
    if (measured > 0) {
        svg.text(12, 348, fmt::format("squares: measured, {:.2f} GFLOP/s", measured));
    }
    return html::section("Roofline", svg.to_string());
}

std::string rows_section(const Characterization& c)
{
    html::Svg svg(460, 300, "Rows by their number of nonzeros");
    double most = 1;
    for (const std::int64_t rows : c.row_histogram) {
        most = std::max(most, static_cast<double>(rows));
    }
    const auto bins = std::max<std::size_t>(c.row_histogram.size(), 1);
    const double width = 440.0 / static_cast<double>(bins);
    for (std::size_t i = 0; i < c.row_histogram.size(); ++i) {
        const auto rows = static_cast<double>(c.row_histogram[i]);
        const double x = 10 + width * static_cast<double>(i);
        // Logarithmic, so that a few long rows show.
        const double height = rows > 0 ? 8 + 210 * std::log1p(rows) / std::log1p(most) : 0;
        svg.rect(x + 1, 250 - height, std::max(width - 2, 1.0), height, html::accent);
        if (rows > 0 && width > 26) {
            svg.text(x + width / 2, 244 - height, count_text(rows), "middle");
        }
        if (width > 26 || i % 2 == 0) {
            svg.text(x + width / 2, 266, i == 0 ? "0" : count_text(std::exp2(static_cast<double>(i) - 1)), "middle");
        }
    }
    svg.line(10, 250, 450, 250, html::faint);
    svg.text(230, 288, "nonzeros of a row, from; rows, logarithmic", "middle");
    return html::section("Row lengths", svg.to_string());
}

std::string spy_section(const Characterization& c)
{
    const auto side = static_cast<std::size_t>(c.spy_side);
    if (side == 0) {
        return "";
    }
    constexpr double size = 400;
    const double cell = size / static_cast<double>(side);
    const auto longer = static_cast<double>(std::max(c.rows, c.inner));
    html::Svg svg(size, size, "Where the nonzeros of A are");
    svg.rect(0, 0, size * static_cast<double>(c.inner) / longer, size * static_cast<double>(c.rows) / longer,
             html::faint, 0.25);
    double most = 1;
    for (const std::int64_t n : c.spy) {
        most = std::max(most, static_cast<double>(n));
    }
    // Four shades, equal neighbours drawn as one.
    const auto shade = [&](std::size_t i) {
        return c.spy[i] == 0 ? 0
                             : 1 + static_cast<int>(3 * std::log1p(static_cast<double>(c.spy[i])) / std::log1p(most));
    };
    for (std::size_t y = 0; y < side; ++y) {
        for (std::size_t x = 0; x < side;) {
            const int now = shade(y * side + x);
            std::size_t end = x + 1;
            while (end < side && shade(y * side + end) == now) {
                ++end;
            }
            if (now > 0) {
                svg.rect(cell * static_cast<double>(x), cell * static_cast<double>(y),
                         cell * static_cast<double>(end - x), cell, html::accent, std::min(1.0, 0.25 * now + 0.05));
            }
            x = end;
        }
    }
    return html::section("Where the nonzeros are", svg.to_string());
}

std::string orders_section(const CharacterizeReport& r)
{
    if (r.found.orders.empty()) {
        return "";
    }
    std::vector<std::vector<std::string>> rows;
    for (const OrderTraffic& order : r.found.orders) {
        rows.push_back({order.name, order.cache.done ? bytes_text(static_cast<double>(order.cache.bytes())) : "-",
                        bytes_text(static_cast<double>(order.cut.bytes)),
                        order.seconds > 0 ? fmt::format("{:.4g} ms", order.seconds * 1e3) : "-"});
    }
    return html::section("Orders of rows and columns",
                         html::table({"order", "simulated cache", "cut by rows", "measured"}, rows));
}

std::string predictions_section(const CharacterizeReport& r)
{
    if (r.kernels.empty()) {
        return "";
    }
    std::vector<std::vector<std::string>> rows;
    for (const KernelCandidate& k : r.kernels) {
        rows.push_back(
            {"1 device, " + k.kernel, bytes_text(k.bytes), fmt::format("{:.4g} ms", k.predicted_seconds * 1e3)});
    }
    for (const auto& d : r.devices) {
        if (d.devices > 1) {
            rows.push_back(
                {fmt::format("{} devices", d.devices), "", fmt::format("{:.4g} ms", d.predicted_seconds * 1e3)});
        }
    }
    return html::section("Predicted by the planner", html::table({"with", "bytes", "a product"}, rows));
}

}  // namespace

std::string characterize_html(const CharacterizeReport& report)
{
    std::string advice = "<ul>\n";
    for (const std::string& sentence : report.advice()) {
        advice += fmt::format("<li>{}</li>\n", html::escaped(sentence));
    }
    const auto context = [&](const char* key) {
        const auto found = report.context.find(key);
        return found == report.context.end() ? std::string() : found->second;
    };
    std::string first =
        html::section("What bounds it, and what would help",
                      advice + fmt::format("</ul>\n<p>{}; {}; librmsp {} ({}), {}</p>", html::escaped(report.topology),
                                           html::escaped(report.measured.empty() ? "not timed" : report.measured),
                                           html::escaped(context("library_version")), html::escaped(context("commit")),
                                           html::escaped(context("date"))));
    first.replace(0, 9, "<section class=\"wide\">");
    const std::string title = report.found.product ? fmt::format("C = A B: {} by {}", report.a, report.b)
                                                   : fmt::format("y = A x: {}", report.a);
    return html::page(title, first + bounds_section(report.found) + facts_section(report.found) +
                                 roofline_section(report) + rows_section(report.found) + spy_section(report.found) +
                                 orders_section(report) + predictions_section(report));
}

}  // namespace rmsp::mspmv
