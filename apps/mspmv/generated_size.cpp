#include "apps/mspmv/generated_size.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rmsp::mspmv {
namespace {

struct Description {
    std::string kind;
    std::vector<double> numbers;
};

Description parse(const std::string& text)
{
    std::istringstream words(text);
    Description out;
    words >> out.kind;
    for (double number = 0; words >> number;) {
        out.numbers.push_back(number);
    }
    return words.eof() ? out : Description{};
}

bool is_stencil(const Description& d) { return d.kind == "stencil7" || d.kind == "stencil27"; }

/// In all directions alike, so that parts have surfaces as the whole's have, but none to less than a few points.
void shrink_grid(std::vector<double>& n, double share)
{
    constexpr double fewest = 8;
    const double wanted = share * n[0] * n[1] * n[2];
    for (int round = 0; round < 3; ++round) {
        const auto long_ones = std::count_if(n.begin(), n.end(), [](double d) { return d > fewest; });
        const double factor =
            std::pow(wanted / (n[0] * n[1] * n[2]), 1 / std::max(1.0, static_cast<double>(long_ones)));
        for (double& d : n) {
            d = d > fewest ? std::max(fewest, std::round(d * factor)) : d;
        }
    }
}

}  // namespace

std::optional<GeneratedSize> generated_size(const Config::Matrix& config)
{
    const Description d = parse(config.generate);
    const std::vector<double>& n = d.numbers;
    if (config.renumber || std::any_of(n.begin(), n.end(), [](double number) { return !(number >= 1); })) {
        return {};
    }
    GeneratedSize size;
    if (is_stencil(d) && n.size() == 3) {
        const double x = n[0];
        const double y = n[1];
        const double z = n[2];
        size.rows = size.cols = x * y * z;
        size.nonzeros = d.kind == "stencil27" ? (3 * x - 2) * (3 * y - 2) * (3 * z - 2)
                                              : size.rows + 2 * ((x - 1) * y * z + x * (y - 1) * z + x * y * (z - 1));
    } else if (d.kind == "banded" && n.size() == 2) {
        const double half = std::min(n[1], n[0] - 1);
        size = {n[0], n[0], n[0] * (2 * half + 1) - half * (half + 1)};
    } else if (d.kind == "rmat" && n.size() == 2 && n[0] < 32) {
        size.rows = size.cols = std::exp2(n[0]);
        size.nonzeros = size.rows * n[1];
    } else if (d.kind == "random" && n.size() == 3) {
        size = {n[0], n[1], n[0] * std::min(n[2], n[1])};
    } else if (d.kind == "powerlaw" && n.size() == 3) {
        size = {n[0], n[0], n[0] * std::min(n[1], n[0])};
    } else {
        return {};
    }
    const auto block = static_cast<double>(config.kron);
    return GeneratedSize{size.rows * block, size.cols * block, size.nonzeros * block * block};
}

std::vector<std::pair<std::int64_t, std::int64_t>> generated_offsets(const Config::Matrix& config)
{
    const Description d = parse(config.generate);
    if (!generated_size(config)) {
        return {};
    }
    if (d.kind == "banded") {
        const auto half = std::llround(d.numbers[1]);
        return {{-half, half}};
    }
    if (!is_stencil(d)) {
        return {};
    }
    const auto line = std::llround(d.numbers[0]);
    const auto plane = line * std::llround(d.numbers[1]);
    std::vector<std::pair<std::int64_t, std::int64_t>> offsets;
    for (const std::int64_t z : {-1, 0, 1}) {
        for (const std::int64_t y : {-1, 0, 1}) {
            const bool in_line = z == 0 && y == 0;
            if (d.kind == "stencil27" || z == 0 || y == 0) {
                const std::int64_t at = z * plane + y * line;
                const std::int64_t beside = d.kind == "stencil27" || in_line ? 1 : 0;
                offsets.emplace_back(at - beside, at + beside);
            }
        }
    }
    return offsets;
}

Config::Matrix block_of_rows(const Config::Matrix& config, int blocks)
{
    const Description d = parse(config.generate);
    constexpr int fewest_planes = 8;
    if (!is_stencil(d) || d.numbers[2] < fewest_planes * blocks) {
        return blocks == 1 ? config : shrunk(config, 1.0 / blocks);
    }
    Config::Matrix slab = config;
    slab.generate = fmt::format("{} {} {} {}", d.kind, d.numbers[0], d.numbers[1], std::round(d.numbers[2] / blocks));
    return slab;
}

Config::Matrix shrunk(const Config::Matrix& config, double share)
{
    Description d = parse(config.generate);
    std::vector<double>& n = d.numbers;
    if (is_stencil(d)) {
        shrink_grid(n, share);
    } else if (d.kind == "rmat") {
        n[0] = std::max(1.0, std::round(n[0] + std::log2(share)));
    } else {
        n[0] = std::max(1.0, std::round(n[0] * share));
        if (d.kind == "random") {
            n[1] = std::max(1.0, std::round(n[1] * share));
        }
    }
    Config::Matrix small = config;
    small.generate = fmt::format("{} {}", d.kind, fmt::join(n, " "));
    return small;
}

}  // namespace rmsp::mspmv
