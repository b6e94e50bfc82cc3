#include "apps/mspmv/terminal.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

namespace rmsp::mspmv {
namespace {

constexpr std::size_t usual_width = 120;
constexpr std::size_t least_width = 40;
constexpr std::size_t least_column = 20;

constexpr const char* bold = "\033[1m";
constexpr const char* green = "\033[32m";
constexpr const char* red = "\033[31m";
constexpr const char* plain = "\033[0m";

/// Where the last column of a line begins that has room for a few words; 0: there is none.
std::size_t last_column(std::string_view line, std::size_t width)
{
    std::size_t column = 0;
    const std::size_t first = line.find_first_not_of(' ');
    for (std::size_t gap = line.find("  ", first); gap != std::string_view::npos; gap = line.find("  ", gap)) {
        gap = line.find_first_not_of(' ', gap);
        if (gap == std::string_view::npos || gap + least_column > width) {
            break;
        }
        column = gap;
    }
    return column;
}

void add_fitted(std::string& out, std::string_view line, std::size_t width)
{
    const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t column = last_column(line, width);
    const std::size_t indent = column > 0 ? column : first + 2;
    std::size_t begin = 0;
    std::size_t room = width;
    while (line.size() - begin > room) {
        // At the last space that leaves what stands before it within the width; a longer word has a line of its own.
        const std::size_t least = begin == 0 ? std::max(column, first) : begin;
        std::size_t end = line.rfind(' ', begin + room);
        if (end == std::string_view::npos || end <= least) {
            end = line.find(' ', std::min(line.size(), least + 1));
        }
        if (end == std::string_view::npos || line.find_first_not_of(' ', end) == std::string_view::npos) {
            break;
        }
        const std::size_t text_end = line.find_last_not_of(' ', end) + 1;
        out += line.substr(begin, text_end - begin);
        out += '\n';
        out.append(indent, ' ');
        begin = line.find_first_not_of(' ', end);
        room = width - indent;
    }
    out += line.substr(begin);
}

}  // namespace

Appearance& appearance() noexcept
{
    static Appearance value;
    return value;
}

std::size_t terminal_width(int stream) noexcept
{
    std::size_t width = 0;
    if (const char* const columns = std::getenv("COLUMNS"); columns != nullptr) {
        width = std::strtoul(columns, nullptr, 10);
    }
    winsize size{};
    if (width == 0 && ::ioctl(stream, TIOCGWINSZ, &size) == 0) {
        width = size.ws_col;
    }
    return width == 0 ? usual_width : std::max(width, least_width);
}

bool coloured(int stream) noexcept
{
    if (appearance().colour != Colour::automatic) {
        return appearance().colour == Colour::always;
    }
    const auto variable = [](const char* name) {
        const char* const text = std::getenv(name);
        return std::string_view(text == nullptr ? "" : text);
    };
    return variable("NO_COLOR").empty() && variable("TERM") != "dumb" && ::isatty(stream) != 0;
}

std::string fitted(std::string_view text, std::size_t width)
{
    std::string out;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        add_fitted(out, text.substr(begin, end - begin), width);
        out += end < text.size() ? "\n" : "";
        begin = end + 1;
    }
    return out;
}

std::string painted(std::string_view text)
{
    static constexpr std::array<std::pair<std::string_view, const char*>, 5> verdicts{{
        {"Verified      passed", green},
        {"Verified      FAILED", red},
        {"Verified      overflow", red},
        {"  outcome     NOT CONVERGED", red},
        {"  outcome     converged", green},
    }};
    std::string out;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view line = text.substr(begin, end - begin);
        const std::size_t label = std::min(line.find(' '), line.size());
        const auto* const verdict =
            std::find_if(verdicts.begin(), verdicts.end(), [&](const auto& v) { return line.starts_with(v.first); });
        if (verdict != verdicts.end()) {
            const std::size_t word = verdict->first.rfind("  ") + 2;
            out += std::string(line.substr(0, word)) + verdict->second;
            out += std::string(line.substr(word, verdict->first.size() - word)) + plain;
            out += line.substr(verdict->first.size());
        } else if (!line.empty() && std::isupper(static_cast<unsigned char>(line[0])) != 0) {
            out += bold + std::string(line.substr(0, label)) + plain + std::string(line.substr(label));
        } else {
            out += line;
        }
        out += end < text.size() ? "\n" : "";
        begin = end + 1;
    }
    return out;
}

}  // namespace rmsp::mspmv
