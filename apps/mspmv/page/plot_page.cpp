#include "apps/mspmv/page/plot_page.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "apps/mspmv/page/charts.hpp"
#include "apps/mspmv/page/html.hpp"
#include "apps/mspmv/page/page.hpp"
#include "apps/mspmv/page/svg.hpp"

namespace rmsp::mspmv {
namespace {

/// One measurement of a report, or what its plan predicts.
struct Row {
    std::size_t report;
    std::string label;
    std::string name;
    double seconds;
    double gflops;
    double share;
    double devices;
};

std::string matrix_of(const Json& context)
{
    const std::string a = text_of(context, "a");
    return a.empty() ? text_of(context, "matrix") : a + " times " + text_of(context, "b");
}

std::vector<Row> rows_of(const std::vector<PlottedReport>& reports)
{
    std::vector<Row> rows;
    for (std::size_t i = 0; i < reports.size(); ++i) {
        const Json& context = child_of(reports[i].report, "context");
        const Json& plan = child_of(context, "plan");
        const Json& benchmarks = child_of(reports[i].report, "benchmarks");
        const double devices = static_cast<double>(child_of(plan, "shards").size());
        for (const Json& b : benchmarks) {
            const std::string name = text_of(b, "name");
            rows.push_back({i, benchmarks.size() > 1 ? reports[i].label + ": " + name : reports[i].label, name,
                            number_of(b, "real_time") * 1e-6, number_of(b, "gflops"), number_of(b, "share_of_limit"),
                            devices});
        }
        if (benchmarks.empty()) {
            rows.push_back({i, reports[i].label + ", predicted", "predicted", number_of(plan, "predicted_seconds"), 0,
                            0, devices});
        }
    }
    return rows;
}

template <class Length, class Text>
std::string bars_of(std::string_view title, const std::vector<Row>& rows, const Length& length, const Text& text)
{
    std::vector<Bar> bars;
    for (const Row& row : rows) {
        if (length(row) > 0) {
            bars.push_back({row.label, length(row), text(length(row)), fmt::format("c{}", row.report % 8)});
        }
    }
    return bar_chart(title, bars);
}

/// Reports of one matrix, precision, library and operation, each relative to that on the fewest devices.
std::string speed_ups(const std::vector<PlottedReport>& reports, const std::vector<Row>& rows)
{
    std::map<std::tuple<std::string, std::string, std::string>, std::map<double, double>> groups;
    for (const Row& row : rows) {
        const Json& context = child_of(reports[row.report].report, "context");
        if (row.seconds > 0 && row.devices > 0) {
            double& seconds =
                groups[{row.name, matrix_of(context), text_of(child_of(context, "plan"), "precision")}][row.devices];
            seconds = seconds > 0 ? std::min(seconds, row.seconds) : row.seconds;
        }
    }
    std::vector<Curve> curves;
    for (const auto& [key, times] : groups) {
        Curve curve{fmt::format("{}, {}", std::get<0>(key), std::get<1>(key)), {}};
        const auto& [fewest, slowest] = *times.begin();
        for (const auto& [devices, seconds] : times) {
            curve.points.emplace_back(devices, fewest * slowest / seconds);
        }
        if (times.size() > 1) {
            curves.push_back(std::move(curve));
        }
    }
    return scaling_chart(curves);
}

using Drawings = std::vector<std::pair<std::string, std::string>>;

Drawings drawings_of(const std::vector<PlottedReport>& reports)
{
    const std::vector<Row> rows = rows_of(reports);
    const auto four_digits = [](double value) { return fmt::format("{:.4g}", value); };
    const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
    Drawings all{{"Median time", bars_of(
                                     "median times", rows, [](const Row& r) { return r.seconds; }, seconds_text)},
                 {"GFLOP/s", bars_of(
                                 "GFLOP/s", rows, [](const Row& r) { return r.gflops; }, four_digits)},
                 {"Share of the bandwidth limit",
                  bars_of(
                      "shares of the bandwidth limit", rows, [](const Row& r) { return r.share; }, percent)},
                 {"Speed-up over devices", speed_ups(reports, rows)}};
    std::erase_if(all, [](const auto& drawing) { return drawing.second.empty(); });
    return all;
}

std::string title_of(const std::vector<PlottedReport>& reports)
{
    const std::string first = matrix_of(child_of(reports.front().report, "context"));
    const bool same = std::all_of(reports.begin(), reports.end(), [&](const PlottedReport& r) {
        return matrix_of(child_of(r.report, "context")) == first;
    });
    return fmt::format("{} reports: {}", reports.size(), same ? first : "several matrices");
}

/// What was measured by each, where and when.
std::vector<std::string> sources_of(const std::vector<PlottedReport>& reports)
{
    std::vector<std::string> lines;
    for (const auto& [label, report] : reports) {
        const Json& context = child_of(report, "context");
        lines.push_back(fmt::format("{}: {}; {}; {}", label, matrix_of(context), text_of(context, "topology"),
                                    source_line(context)));
    }
    return lines;
}

}  // namespace

std::string plot_page(const std::vector<PlottedReport>& reports)
{
    std::string sections;
    for (const auto& [title, drawing] : drawings_of(reports)) {
        sections += html::section(title, drawing);
    }
    return html::document(
        title_of(reports), {},
        html::columns(sections) + html::section("What was measured", html::list(sources_of(reports))));
}

std::string plot_svg(const std::vector<PlottedReport>& reports)
{
    return stacked(title_of(reports), drawings_of(reports), sources_of(reports));
}

}  // namespace rmsp::mspmv
