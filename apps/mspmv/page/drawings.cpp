#include "apps/mspmv/page/drawings.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "apps/mspmv/page/charts.hpp"
#include "apps/mspmv/page/svg.hpp"

namespace rmsp::mspmv {
namespace {

std::vector<std::string> device_names(const Json& context)
{
    std::vector<std::string> names;
    for (const Json& shard : child_of(child_of(context, "plan"), "shards")) {
        names.push_back(short_name(text_of(shard, "name")));
    }
    return names;
}

std::vector<double> numbers(const Json& list)
{
    std::vector<double> out;
    for (const Json& element : list) {
        out.push_back(element.is_number() ? element.get<double>() : NAN);
    }
    return out;
}

struct Phase {
    std::string name;
    std::vector<double> begin;
    std::vector<double> end;
};

/// Phases that take place at the same time begin together: an exchange beside the rows that need none of it, which is
/// within "kernel". All others follow each other.
std::vector<Phase> placed_phases(const Json& phases, std::size_t devices)
{
    const bool overlaps = phases.contains("interior") || phases.contains("first columns");
    std::vector<double> now(devices, 0.0);
    std::map<std::string, std::vector<double>> ends;
    std::vector<Phase> out;
    for (const auto& [name, list] : phases.items()) {
        std::vector<double> times = numbers(list);
        if (times.size() != devices) {
            continue;
        }
        Phase phase{name, now, now};
        const bool within = overlaps && (name == "interior" || name == "first columns" || name == "kernel");
        for (std::size_t d = 0; d < devices; ++d) {
            const double first = out.empty() ? 0.0 : out.front().begin[d];
            if (within) {
                phase.begin[d] = first;
            } else if (overlaps && (name == "boundary" || name == "other columns")) {
                const auto after = ends.find(name == "boundary" ? "x exchange" : "first columns");
                phase.begin[d] = after == ends.end() ? now[d] : after->second[d];
            }
            phase.end[d] = phase.begin[d] + std::max(0.0, times[d]);
            now[d] = std::max(now[d], phase.end[d]);
        }
        ends[name] = phase.end;
        out.push_back(std::move(phase));
    }
    return out;
}

}  // namespace

std::string short_name(const std::string& name) { return name.substr(0, name.find(' ')); }

double work_of(const Json& shard) { return number_of(shard, shard.contains("products") ? "products" : "nonzeros"); }

double number_of(const Json& object, const char* key, double otherwise)
{
    const auto it = object.is_object() ? object.find(key) : object.end();
    return it != object.end() && it->is_number() ? it->get<double>() : otherwise;
}

std::string text_of(const Json& object, const char* key)
{
    const auto it = object.is_object() ? object.find(key) : object.end();
    return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

const Json& child_of(const Json& object, const char* key)
{
    static const Json none = Json::array();
    const auto it = object.is_object() ? object.find(key) : object.end();
    return it != object.end() && it->is_structured() ? *it : none;
}

std::string timeline_drawing(const Json& context, const Json& benchmark)
{
    const std::vector<std::string> names = device_names(context);
    const std::vector<Phase> phases = placed_phases(child_of(benchmark, "phases"), names.size());
    double last = 0;
    for (const Phase& phase : phases) {
        last = std::max(last, *std::max_element(phase.end.begin(), phase.end.end()));
    }
    if (phases.empty() || !(last > 0)) {
        return "";
    }
    constexpr double left = 58;
    const double bar = phases.size() > 3 ? 6 : 9;
    const double lane = bar * static_cast<double>(phases.size()) + 8;
    const double scale = (Svg::width - left - 10) / last;
    const double below = lane * static_cast<double>(names.size()) + 8;
    Svg svg(below + 30 + 16 * std::ceil(static_cast<double>(phases.size()) / 3), "phases of each device");
    for (std::size_t d = 0; d < names.size(); ++d) {
        const double y = 4 + lane * static_cast<double>(d);
        svg.text(left - 6, y + lane / 2, names[d], "end");
        for (std::size_t p = 0; p < phases.size(); ++p) {
            const double begin = phases[p].begin[d];
            svg.rectangle(
                left + scale * begin, y + bar * static_cast<double>(p),
                std::max(0.8, scale * (phases[p].end[d] - begin)), bar - 1, fmt::format("c{}", p % 8),
                fmt::format("{}: {}, {}", names[d], phases[p].name, seconds_text((phases[p].end[d] - begin) * 1e-6)));
        }
    }
    svg.line(left, below, Svg::width - 10, below, "axis");
    svg.text(left, below + 14, "0", "middle", "quiet");
    svg.text(Svg::width - 10, below + 14, seconds_text(last * 1e-6), "end", "quiet");
    for (std::size_t p = 0; p < phases.size(); ++p) {
        const double x = 10 + 116.0 * static_cast<double>(p % 3);
        const double y = below + 22 + 16.0 * static_cast<double>(p / 3);
        svg.rectangle(x, y, 10, 10, fmt::format("c{}", p % 8));
        svg.text(x + 15, y + 9, phases[p].name);
    }
    return svg.finish();
}

std::string roofline_drawing(const Json& context, const Json& benchmarks)
{
    std::vector<RooflinePoint> points;
    double limit = 0;
    for (const Json& b : benchmarks) {
        const double gflops = number_of(b, "gflops");
        const double bytes = number_of(b, "bytes_per_second");
        if (gflops > 0 && bytes > 0) {
            points.push_back({text_of(b, "name"), gflops * 1e9 / bytes, gflops});
            limit = std::max(limit, number_of(b, "limit_gbs"));
        }
    }
    return roofline_chart(points, limit, number_of(context, "peak_gflops"));
}

std::string balance_drawing(const Json& context, const Json& benchmarks)
{
    std::vector<std::string> names = device_names(context);
    std::vector<double> work;
    for (const Json& shard : child_of(child_of(context, "plan"), "shards")) {
        work.push_back(work_of(shard));
    }
    std::vector<double> times;
    if (!benchmarks.empty()) {
        const Json& phases = child_of(benchmarks.front(), "phases");
        for (const char* name : {"kernel", "stream", "values", "compute", "numeric"}) {
            if (times.empty() && numbers(child_of(phases, name)).size() == names.size()) {
                times = numbers(child_of(phases, name));
            }
        }
    }
    // Those with a part come first.
    while (!work.empty() && !(work.back() > 0)) {
        work.pop_back();
    }
    names.resize(work.size());
    times.resize(std::min(times.size(), work.size()));
    const auto mean = [](const std::vector<double>& v) {
        double sum = 0;
        for (const double x : v) {
            sum += x;
        }
        return v.empty() ? 0 : sum / static_cast<double>(v.size());
    };
    if (names.size() < 2 || !(mean(work) > 0)) {
        return "";
    }
    double most = 1;
    for (const double w : work) {
        most = std::max(most, w / mean(work));
    }
    for (const double t : times) {
        most = std::max(most, mean(times) > 0 ? t / mean(times) : 0);
    }
    constexpr double left = 58;
    const double scale = (Svg::width - left - 50) / most;
    const double lane = times.empty() ? 20 : 30;
    const double height = lane * static_cast<double>(names.size());
    Svg svg(height + 26, "balance");
    for (std::size_t d = 0; d < names.size(); ++d) {
        const double y = 2 + lane * static_cast<double>(d);
        svg.text(left - 6, y + lane / 2 + 1, names[d], "end");
        const auto bar = [&](double share, double top, const char* style) {
            svg.rectangle(left, top, std::max(0.8, scale * share), 11, style);
            // In a column of their own: beside a bar that ends before the mean, the mark would cross it.
            svg.text(Svg::width - 6, top + 9.5, fmt::format("{:.1f} %", 100 * share), "end", "quiet");
        };
        bar(work[d] / mean(work), y, "c0");
        if (!times.empty() && mean(times) > 0) {
            bar(times[d] / mean(times), y + 13, "c1");
        }
    }
    svg.line(left + scale, 0, left + scale, height + 2, "mark");
    svg.rectangle(10, height + 9, 10, 10, "c0");
    svg.text(25, height + 18, "work of the mean");
    if (!times.empty()) {
        svg.rectangle(150, height + 9, 10, 10, "c1");
        svg.text(165, height + 18, "time of the mean");
    }
    return svg.finish();
}

std::string residual_drawing(const Json& benchmark)
{
    const std::vector<double> history = numbers(child_of(benchmark, "residual_history"));
    const double unit = number_of(benchmark, "rhs_norm") > 0 ? number_of(benchmark, "rhs_norm") : 1;
    const double target = number_of(benchmark, "target_residual") / unit;
    double low = target > 0 ? std::log10(target) : INFINITY;
    double high = low;
    for (const double r : history) {
        if (r > 0 && std::isfinite(r)) {
            low = std::min(low, std::log10(r / unit));
            high = std::isfinite(high) ? std::max(high, std::log10(r / unit)) : std::log10(r / unit);
        }
    }
    if (history.size() < 2 || !std::isfinite(low) || !std::isfinite(high)) {
        return "";
    }
    low = std::floor(low);
    high = std::max(low + 1, std::ceil(high));
    constexpr double x0 = 44;
    constexpr double x1 = Svg::width - 10;
    constexpr double y0 = 190;
    constexpr double y1 = 10;
    const auto at_y = [&](double exponent) { return y0 + (y1 - y0) * (exponent - low) / (high - low); };
    Svg svg(212, "residual over the iterations");
    const double step = std::max(1.0, std::ceil((high - low) / 6));
    for (double e = low; e <= high; e += step) {
        svg.line(x0, at_y(e), x1, at_y(e), "grid");
        svg.text(x0 - 5, at_y(e) + 4, fmt::format("1e{:.0f}", e), "end", "quiet");
    }
    if (target > 0) {
        svg.line(x0, at_y(std::log10(target)), x1, at_y(std::log10(target)), "mark");
    }
    // No more points than a page has dots; each the least of those that it stands for.
    constexpr std::size_t most_points = 720;
    const std::size_t stride = (history.size() + most_points - 1) / most_points;
    std::string points;
    for (std::size_t i = 0; i < history.size(); i += stride) {
        const auto end = history.begin() + static_cast<std::ptrdiff_t>(std::min(history.size(), i + stride));
        const double r = *std::min_element(history.begin() + static_cast<std::ptrdiff_t>(i), end);
        if (r > 0 && std::isfinite(r)) {
            points += fmt::format("{:.1f},{:.1f} ",
                                  x0 + (x1 - x0) * static_cast<double>(i) / static_cast<double>(history.size() - 1),
                                  at_y(std::log10(r / unit)));
        }
    }
    svg.polyline(points, "curve");
    svg.line(x0, y0, x1, y0, "axis");
    svg.text(x0, y0 + 15, "0", "middle", "quiet");
    svg.text(x1, y0 + 15, fmt::format("{} iterations", history.size() - 1), "end", "quiet");
    return svg.finish();
}

std::string prediction_drawing(const Json& context)
{
    std::vector<Bar> bars;
    for (const Json& p : child_of(child_of(context, "plan"), "predictions")) {
        const double seconds = number_of(p, "seconds");
        const double devices = number_of(p, "devices");
        bars.push_back(
            {fmt::format("{:.0f} device{}", devices, devices == 1 ? "" : "s"), seconds, seconds_text(seconds)});
    }
    return bar_chart("predicted times", bars);
}

}  // namespace rmsp::mspmv
