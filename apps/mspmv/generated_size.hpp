#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

/// Of stencils and banded matrices, before matrix.kron: row i has the columns i + d, where it has a point or column
/// there, for each d from `first` to `second` of the ranges. Empty of other kinds.
std::vector<std::pair<std::int64_t, std::int64_t>> generated_offsets(const Config::Matrix& config);

/// About one of so many equal blocks of rows: of a stencil a slab of its grid, of others a smaller matrix.
Config::Matrix block_of_rows(const Config::Matrix& config, int blocks);

/// A matrix of the same kind with about `share` of the nonzeros, 0 < share < 1: a smaller grid, fewer rows, or
/// a smaller scale.
Config::Matrix shrunk(const Config::Matrix& config, double share);

}  // namespace rmsp::mspmv
