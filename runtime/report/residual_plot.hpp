#pragma once

#include <string>
#include <vector>

namespace rmsp::report {

/// log10 of residuals divided by `reference` over the iterations, as lines of text; `target` is drawn as a line of dots
/// where it lies in the range. Empty where fewer than two residuals are above 0 and finite.
std::string residual_plot(const std::vector<double>& history, double reference, double target);

}  // namespace rmsp::report
