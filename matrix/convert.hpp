#pragma once

#include <cstdint>

#include <rmsp/matrix.hpp>

namespace rmsp::matrix {

/// The line (row or column) of each of nnz entries, from the lines + 1 pointers, which begin at 0.
IndexArray expand(std::int64_t lines, std::int64_t nnz, IndexView pointers);

}  // namespace rmsp::matrix
