#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Descriptions of generated matrices, "banded 1000 5": what they may say.
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
    double exponent = 0;  ///< the one argument that is no integer, of the generator that takes it
};
/// \throws Error(usage) naming the word that is wrong
Description parse_description(std::string_view text);
/// \throws Error(usage) "generated matrix "DESCRIPTION": WHAT"
[[noreturn]] void refuse_description(std::string_view description, const std::string& what);

}  // namespace rmsp::io
