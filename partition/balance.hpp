#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rmsp::partition {

/// Weights of the parts that would take equal time, from the nonzeros and the seconds of parts that were measured, all
/// of them above 0: inside each measured part every nonzero is taken to last as long as any other. Their mean is 1.
std::vector<double> equal_time_weights(std::span<const std::int64_t> nonzeros, std::span<const double> seconds);

/// Largest of the times over their mean, minus one; 0 for none.
double time_imbalance(std::span<const double> seconds);

}  // namespace rmsp::partition
