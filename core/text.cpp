#include "core/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace rmsp::text {

std::string grouped(std::int64_t n)
{
    std::string digits = fmt::format("{}", n);
    const std::size_t first = n < 0 ? 1 : 0;
    for (std::size_t i = digits.size(); i > first + 3;) {
        i -= 3;
        digits.insert(i, ",");
    }
    return digits;
}

std::string seconds(double s)
{
    struct Unit {
        double scale;
        const char* name;
    };
    static constexpr std::array<Unit, 4> units{{{1.0, "s"}, {1e3, "ms"}, {1e6, "us"}, {1e9, "ns"}}};
    if (!std::isfinite(s) || s == 0) {
        return fmt::format("{} s", s);
    }
    for (const Unit& unit : units) {
        const double value = s * unit.scale;
        if (std::abs(value) >= 1 || unit.scale == units.back().scale) {
            const int decimals = std::abs(value) >= 100 ? 1 : std::abs(value) >= 10 ? 2 : 3;
            return fmt::format("{:.{}f} {}", value, decimals, unit.name);
        }
    }
    return {};
}

std::string bytes(std::int64_t n)
{
    static constexpr std::array names{"KiB", "MiB", "GiB", "TiB"};
    if (n < 1024) {
        return fmt::format("{} B", n);
    }
    double value = static_cast<double>(n) / 1024;
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < names.size()) {
        value /= 1024;
        ++unit;
    }
    return fmt::format("{:.{}f} {}", value, value >= 100 ? 1 : 2, names[unit]);
}

std::string percent(double share) { return fmt::format("{:.{}f} %", 100 * share, std::abs(share) < 0.1 ? 2 : 1); }

std::string ranges(const std::vector<int>& numbers)
{
    std::vector<int> sorted = numbers;
    std::sort(sorted.begin(), sorted.end());
    std::string text;
    for (std::size_t i = 0; i < sorted.size();) {
        std::size_t end = i + 1;
        while (end < sorted.size() && sorted[end] <= sorted[end - 1] + 1) {
            ++end;
        }
        text += text.empty() ? "" : ",";
        text += sorted[end - 1] == sorted[i] ? fmt::format("{}", sorted[i])
                                             : fmt::format("{}-{}", sorted[i], sorted[end - 1]);
        i = end;
    }
    return text.empty() ? "-" : text;
}

std::string shortened(std::string_view text, std::size_t limit)
{
    return text.size() <= limit ? std::string(text) : std::string(text.substr(0, limit - 3)) + "...";
}

std::string wrapped(std::string_view label, std::string_view text)
{
    std::string out(label);
    std::size_t column = label.size();
    for (std::size_t begin = text.find_first_not_of(" \n"); begin != std::string_view::npos;) {
        const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
        const std::string_view word = text.substr(begin, end - begin);
        const bool first_of_line = column == label.size();
        if (!first_of_line && column + 1 + word.size() > width) {
            out += '\n';
            out.append(label.size(), ' ');
            column = label.size();
        } else if (!first_of_line) {
            out += ' ';
            ++column;
        }
        out += word;
        column += word.size();
        begin = text.find_first_not_of(" \n", end);
    }
    return out + '\n';
}

std::string Table::to_text(std::size_t indent) const
{
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        std::size_t widest = columns_[c].title.size();
        for (const std::vector<std::string>& row : rows_) {
            widest = std::max(widest, row.at(c).size());
        }
        widths.push_back(widest);
    }
    std::string out;
    const auto add_line = [&](const auto& cell) {
        std::string line(indent, ' ');
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            line += c == 0 ? "" : "  ";
            line += columns_[c].align == Align::left ? fmt::format("{:<{}}", cell(c), widths[c])
                                                     : fmt::format("{:>{}}", cell(c), widths[c]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + '\n';
    };
    add_line([&](std::size_t c) -> const std::string& { return columns_[c].title; });
    for (const std::vector<std::string>& row : rows_) {
        add_line([&](std::size_t c) -> const std::string& { return row[c]; });
    }
    return out;
}

}  // namespace rmsp::text
