#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <rmsp/io.hpp>

namespace rmsp::io {

/// A generator as descriptions name it.
struct Generator {
    std::string_view name;
    std::array<std::string_view, 4> parameters;  ///< empty ones are not taken
};

/// Generators whose rows are written one by one; descriptions alone name them.
inline constexpr std::array<Generator, 13> structures{{
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
    {"elasticity", {"nx", "ny", "nz"}},
    {"unstructured", {"nx", "ny", "nz"}},
}};

using Arguments = std::array<std::int64_t, 4>;

/// A description in its parts; `words` are those of the text, the generator's name first.
struct Description {
    Generator generator;
    std::vector<std::string_view> words;
    Arguments arguments;  ///< integers; 0 where the generator takes none, or another number
};
/// \throws Error(usage) naming the word that is wrong
Description parse_description(std::string_view text);

/// The matrix of one of `structures`, whose parameters are not negative.
/// \throws Error(usage) for sizes without a matrix, and for values of stencils; Error(out_of_memory)
template <class T>
CsrMatrix<T> generate_structure(std::string_view name, const Arguments& arguments, const GenerateOptions& options);

/// The stiffness of a bar of nx x ny x nz unit cubes (Young's modulus 1, Poisson's ratio 0.3), three displacements a
/// node, held at its end x = -1, whose nodes are left out: nx x (ny + 1) x (nz + 1) nodes have unknowns. Values are its
/// own, or ones. \throws Error(usage) for values of stencils; Error(out_of_memory)
template <class T>
CsrMatrix<T> elasticity(const Arguments& arguments, const GenerateOptions& options);

/// The vertices of a mesh of tetrahedra, of irregular degree, in a box of nx x ny x nz cells that has holes; numbered
/// as a sweep through the box meets them. \throws Error(usage) for too many cells; Error(out_of_memory)
template <class T>
CsrMatrix<T> unstructured(const Arguments& arguments, const GenerateOptions& options);

}  // namespace rmsp::io
