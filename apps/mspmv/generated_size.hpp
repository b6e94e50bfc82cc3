#pragma once

#include <optional>
#include <string>

#include <rmsp/config.hpp>

/// Sizes of generated matrices without generating them.
namespace rmsp::mspmv {

struct GeneratedSize {
    double rows = 0;
    double cols = 0;
    double nonzeros = 0;  ///< exact but for R-MAT graphs, whose repeated edges count, and power laws
};

/// Nothing for a matrix from a file, for one that generate() would refuse, and where rows and columns are numbered
/// anew.
std::optional<GeneratedSize> generated_size(const Config::Matrix& config);

/// A matrix of the same kind with about `share` of the nonzeros, 0 < share < 1: a smaller grid, fewer rows, or
/// a smaller scale.
Config::Matrix shrunk(const Config::Matrix& config, double share);

}  // namespace rmsp::mspmv
