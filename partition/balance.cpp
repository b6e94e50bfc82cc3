#include "partition/balance.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace rmsp::partition {

std::vector<double> equal_time_weights(std::span<const std::int64_t> nonzeros, std::span<const double> seconds)
{
    const std::size_t parts = nonzeros.size();
    const double total_seconds = std::accumulate(seconds.begin(), seconds.end(), 0.0);
    const auto total = static_cast<double>(std::accumulate(nonzeros.begin(), nonzeros.end(), std::int64_t{0}));
    std::vector<double> weights;
    // The measured part that the cut falls into, and the nonzeros and seconds before it.
    std::size_t part = 0;
    double nonzeros_before = 0;
    double seconds_before = 0;
    double last_cut = 0;
    for (std::size_t i = 1; i <= parts; ++i) {
        const double target = total_seconds * static_cast<double>(i) / static_cast<double>(parts);
        while (part + 1 < parts && seconds_before + seconds[part] < target) {
            seconds_before += seconds[part];
            nonzeros_before += static_cast<double>(nonzeros[part]);
            ++part;
        }
        const double inside = static_cast<double>(nonzeros[part]) * (target - seconds_before) / seconds[part];
        const double cut = i == parts ? total : nonzeros_before + inside;
        weights.push_back((cut - last_cut) / total * static_cast<double>(parts));
        last_cut = cut;
    }
    return weights;
}

double time_imbalance(std::span<const double> seconds)
{
    const double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
    return total > 0
               ? *std::max_element(seconds.begin(), seconds.end()) * static_cast<double>(seconds.size()) / total - 1.0
               : 0.0;
}

}  // namespace rmsp::partition
