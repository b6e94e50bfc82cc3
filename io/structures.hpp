#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <rmsp/io.hpp>

namespace rmsp::io {

/// A generator as descriptions name it.
struct Generator {
    std::string_view name;
    std::array<std::string_view, 4> parameters;  ///< empty ones are not taken
};

/// Generators whose rows are written one by one; descriptions alone name them.
inline constexpr std::array<Generator, 11> structures{{
    {"stencil19", {"nx", "ny", "nz"}},
    {"triangles", {"nx", "ny"}},
    {"tetrahedra", {"nx", "ny", "nz"}},
    {"neighbours", {"points", "dimensions", "per_row"}},
    {"ragged", {"nx", "ny", "nz", "most"}},
    {"multidiagonal", {"rows", "count"}},
    {"thinned", {"rows", "half_band", "per_row"}},
    {"arrow", {"rows", "width"}},
    {"hubs", {"rows", "per_row", "hub_rows", "hub_columns"}},
    {"gaps", {"rows", "per_row", "nth"}},
    {"program", {"rows", "cols", "per_row", "hubs"}},
}};

/// The matrix of one of `structures`, whose parameters are not negative.
/// \throws Error(usage) for sizes without a matrix, and for values of stencils; Error(out_of_memory)
template <class T>
CsrMatrix<T> generate_structure(std::string_view name, const std::array<std::int64_t, 4>& arguments,
                                const GenerateOptions& options);

}  // namespace rmsp::io
