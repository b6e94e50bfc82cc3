#include "numa/cores.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace rmsp::numa {

std::vector<std::vector<int>> pus_by_core(const NumaNode& node)
{
    std::vector<std::vector<int>> result;
    for (const int pu : node.pus) {
        const bool starts_core = result.size() < node.cores.size() && pu == node.cores[result.size()];
        if (starts_core || result.empty()) {
            result.emplace_back();
        }
        result.back().push_back(pu);
    }
    return result;
}

std::string format_ranges(std::vector<int> numbers)
{
    std::sort(numbers.begin(), numbers.end());
    std::string text;
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t last = i;
        while (last + 1 < numbers.size() && numbers[last + 1] <= numbers[last] + 1) {
            ++last;
        }
        text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[i]);
        if (numbers[last] > numbers[i]) {
            text += fmt::format("-{}", numbers[last]);
        }
        i = last + 1;
    }
    return text.empty() ? "-" : text;
}

}  // namespace rmsp::numa
