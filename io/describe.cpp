#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include <core/value_types.hpp>
#include <rmsp/io.hpp>

#include "io/build_rows.hpp"
#include "io/description.hpp"
#include "io/structures.hpp"

namespace rmsp {

template <class T>
CsrMatrix<T> generate(std::string_view description, const GenerateOptions& options)
{
    io::require_values(options);
    const auto [generator, words, arguments, exponent] = io::parse_description(description);
    const auto [a, b, c, unused] = arguments;
    static_cast<void>(unused);
    if (generator.name == "stencil27") {
        return stencil27<T>(a, b, c, options);
    }
    if (generator.name == "stencil7") {
        return stencil7<T>(a, b, c, options);
    }
    if (generator.name == "banded") {
        return banded<T>(a, b, options);
    }
    if (generator.name == "powerlaw") {
        return power_law<T>(a, b, exponent, options);
    }
    if (generator.name == "random") {
        return random_uniform<T>(a, b, c, options);
    }
    if (generator.name != "rmat") {
        return io::generate_structure<T>(generator.name, arguments, options);
    }
    if (a > INT32_MAX || b > INT32_MAX) {
        io::refuse_description(description,
                               fmt::format("{} \"{}\" is too large", generator.parameters[a > INT32_MAX ? 0 : 1],
                                           words[a > INT32_MAX ? 1 : 2]));
    }
    return rmat<T>(static_cast<int>(a), static_cast<int>(b), options);
}

#define RMSP_INSTANTIATE(T) template CsrMatrix<T> generate(std::string_view, const GenerateOptions&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp
