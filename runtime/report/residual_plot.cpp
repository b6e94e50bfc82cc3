#include "runtime/report/residual_plot.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "core/text.hpp"

namespace rmsp::report {
namespace {

constexpr std::size_t most_columns = 72;
constexpr std::size_t lines = 12;

bool drawable(double value) { return std::isfinite(value) && value > 0; }

}  // namespace

std::string residual_plot(const std::vector<double>& history, double reference, double target)
{
    const double unit = drawable(reference) ? reference : 1;
    double high = -INFINITY;
    double low = INFINITY;
    for (const double value : history) {
        if (drawable(value)) {
            high = std::max(high, std::log10(value / unit));
            low = std::min(low, std::log10(value / unit));
        }
    }
    if (!(low < high)) {
        return "";
    }
    const double goal = drawable(target) ? std::log10(target / unit) : -INFINITY;
    if (goal < low && goal > low - 1) {
        low = goal;
    }
    const auto line_of = [&](double exponent) {
        return static_cast<std::size_t>(std::lround((high - exponent) / (high - low) * double{lines - 1}));
    };
    const std::size_t columns = std::min(most_columns, history.size());
    std::vector<std::string> picture(lines, std::string(columns, ' '));
    if (goal >= low && goal <= high) {
        picture[line_of(goal)].assign(columns, '.');
    }
    for (std::size_t i = 0; i < history.size(); ++i) {
        if (drawable(history[i])) {
            // The last iteration is in the last column, whatever their number.
            const std::size_t column =
                history.size() == columns ? i : i * (columns - 1) / std::max<std::size_t>(history.size() - 1, 1);
            picture[line_of(std::log10(history[i] / unit))][column] = '*';
        }
    }
    std::string out;
    for (std::size_t line = 0; line < lines; ++line) {
        std::string& row = picture[line];
        row.erase(row.find_last_not_of(' ') + 1);
        const double exponent = high - (high - low) * static_cast<double>(line) / double{lines - 1};
        out += fmt::format("  {:>8.2f}  |{}\n", exponent, row);
    }
    const std::string last = text::grouped(static_cast<std::int64_t>(history.size()) - 1);
    out += fmt::format("  {:>8}  +{:->{}}\n", "", "", columns);
    return out + fmt::format("  {:>8}   0{:>{}} iterations\n", "", last, std::max(columns, last.size() + 2) - 1);
}

}  // namespace rmsp::report
