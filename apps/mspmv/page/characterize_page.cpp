#include "apps/mspmv/page/characterize_page.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/mspmv/page/charts.hpp"
#include "apps/mspmv/page/html.hpp"
#include "apps/mspmv/page/svg.hpp"

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
    std::vector<Bar> bars;
    const auto add = [&](const char* label, std::int64_t bytes, const char* style) {
        bars.push_back({label, static_cast<double>(bytes), ratio_text(bytes, c), style});
    };
    add("lower bound", c.lower().bytes, "c2");
    add("upper bound", c.upper.moved.bytes, "c0");
    if (c.cache.done) {
        add("by rows, simulated cache", c.cache.bytes(), "c1");
        add("by rows, no cache", c.cache.uncached_bytes, "c7");
    }
    const std::string partitioner =
        c.upper.partitioner.empty() ? "" : fmt::format("; partitioner: {}", c.upper.partitioner);
    const std::string how = fmt::format("Fast memory of {}, lines of {} B. Upper bound: {}, {} parts{}.",
                                        bytes_text(static_cast<double>(c.fast_bytes)), c.line_bytes, c.upper.method,
                                        c.upper.parts, partitioner);
    return html::section("Bytes moved", bar_chart("bytes moved", bars) + fmt::format("<p>{}</p>\n", escaped(how)));
}

std::string facts_section(const Characterization& c)
{
    std::vector<std::vector<std::string>> rows{
        {"Operation", c.product ? "C = A B, " + c.precision : "y = A x, " + c.precision},
        {"Rows x columns of A", fmt::format("{} x {}", html::grouped(static_cast<double>(c.rows)),
                                            html::grouped(static_cast<double>(c.inner)))},
        {"Nonzeros of A", html::grouped(static_cast<double>(c.a_nnz))},
        {"Longest row, mean, deviation",
         fmt::format("{}, {:.1f}, {:.1f}", html::grouped(static_cast<double>(c.row_lengths.longest_row)),
                     c.row_lengths.mean, c.row_lengths.deviation)},
        {"Empty rows", html::grouped(static_cast<double>(c.row_lengths.empty_rows))}};
    if (c.product) {
        rows.push_back({"Nonzeros of B", html::grouped(static_cast<double>(c.b_nnz))});
        rows.push_back({"Nonzeros of C", html::grouped(static_cast<double>(c.c_nnz))});
        rows.push_back({"Multiplies for each of C", fmt::format("{:.2f}", c.compression())});
    }
    rows.push_back({"Operations", count_text(c.flops())});
    rows.push_back({"Operations for each word, at most", fmt::format("{:.3f}", c.intensity_per_word())});
    return html::section("The operation", html::table({}, rows));
}

std::string roofline_section(const CharacterizeReport& r)
{
    const Characterization& c = r.found;
    if (r.limit_gbs <= 0 || c.multiplies == 0) {
        return "";
    }
    std::vector<RooflinePoint> points;
    const auto add = [&](const char* name, std::int64_t bytes) {
        const double intensity = c.flops() / static_cast<double>(bytes);
        const double memory = intensity * r.limit_gbs;
        points.push_back({name, intensity, r.peak_gflops > 0 ? std::min(memory, r.peak_gflops) : memory});
    };
    add("upper bound allows", c.upper.moved.bytes);
    if (c.cache.done) {
        add("by rows, simulated cache, allows", c.cache.bytes());
    }
    add("lower bound allows", c.lower().bytes);
    const double measured = r.seconds > 0 ? c.flops() / r.seconds * 1e-9 : 0;
    return html::section("Roofline", roofline_chart(points, r.limit_gbs, r.peak_gflops, measured));
}

std::string rows_section(const Characterization& c)
{
    Svg svg(240, "rows by their number of nonzeros");
    double most = 1;
    for (const std::int64_t rows : c.row_histogram) {
        most = std::max(most, static_cast<double>(rows));
    }
    const auto bins = std::max<std::size_t>(c.row_histogram.size(), 1);
    const double width = Svg::width / static_cast<double>(bins);
    for (std::size_t i = 0; i < c.row_histogram.size(); ++i) {
        const auto rows = static_cast<double>(c.row_histogram[i]);
        const double x = width * static_cast<double>(i);
        // Logarithmic, so that a few long rows show.
        const double height = rows > 0 ? 8 + 170 * std::log1p(rows) / std::log1p(most) : 0;
        svg.rectangle(x + 1, 200 - height, std::max(width - 2, 1.0), height, "c0");
        if (rows > 0 && width > 26) {
            svg.text(x + width / 2, 195 - height, count_text(rows), "middle", "quiet");
        }
        if (width > 26 || i % 2 == 0) {
            svg.text(x + width / 2, 214, i == 0 ? "0" : count_text(std::exp2(static_cast<double>(i) - 1)), "middle",
                     "quiet");
        }
    }
    svg.line(0, 200, Svg::width, 200, "axis");
    svg.text(Svg::width / 2, 232, "nonzeros of a row, from; rows, logarithmic", "middle", "quiet");
    return html::section("Row lengths", svg.finish());
}

std::string spy_section(const Characterization& c)
{
    const auto side = static_cast<std::size_t>(c.spy_side);
    if (side == 0) {
        return "";
    }
    constexpr double size = Svg::width;
    const double cell = size / static_cast<double>(side);
    const auto longer = static_cast<double>(std::max(c.rows, c.inner));
    Svg svg(size, "where the nonzeros of A are");
    svg.rectangle(0, 0, size * static_cast<double>(c.inner) / longer, size * static_cast<double>(c.rows) / longer,
                  "ground");
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
                svg.rectangle(cell * static_cast<double>(x), cell * static_cast<double>(y),
                              cell * static_cast<double>(end - x), cell, fmt::format("s{}", now));
            }
            x = end;
        }
    }
    return html::section("Where the nonzeros are", svg.finish());
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
                        order.seconds > 0 ? seconds_text(order.seconds) : "-"});
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
        rows.push_back({"1 device, " + k.kernel, bytes_text(k.bytes), seconds_text(k.predicted_seconds)});
    }
    for (const auto& d : r.devices) {
        if (d.devices > 1) {
            rows.push_back({fmt::format("{} devices", d.devices), "", seconds_text(d.predicted_seconds)});
        }
    }
    return html::section("Predicted by the planner", html::table({"with", "bytes", "a product"}, rows));
}

}  // namespace

std::string characterize_page(const CharacterizeReport& report)
{
    const Characterization& c = report.found;
    const auto context = [&](const char* key) {
        const auto found = report.context.find(key);
        return found == report.context.end() ? std::string() : found->second;
    };
    html::Facts facts{{report.seconds > 0 ? seconds_text(report.seconds) : "not timed",
                       report.seconds > 0 ? report.measured : "a product"}};
    if (report.seconds > 0) {
        facts.emplace_back(fmt::format("{:.4g}", c.flops() / report.seconds * 1e-9), "GFLOP/s");
    }
    facts.emplace_back(bytes_text(static_cast<double>(c.lower().bytes)), "has to move, at least");
    facts.emplace_back(bytes_text(static_cast<double>(c.upper.moved.bytes)), "suffice, in the best order found");
    return html::document(
        c.product ? fmt::format("C = A B: {} by {}", report.a, report.b) : fmt::format("y = A x: {}", report.a),
        {report.topology,
         html::source_line(context("library_version"), context("commit"), context("date"), context("host_name"))},
        html::facts(facts) + html::section("What bounds it, and what would help", html::list(report.advice())) +
            html::columns(bounds_section(c) + facts_section(c) + roofline_section(report) + rows_section(c) +
                          spy_section(c) + orders_section(report) + predictions_section(report)));
}

}  // namespace rmsp::mspmv
