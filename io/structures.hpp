#pragma once

#include <string_view>

#include <rmsp/io.hpp>

#include "io/description.hpp"

namespace rmsp::io {

/// The matrix of one of `structures`, whose parameters are not negative.
/// \throws Error(usage) for sizes without a matrix, and for values of stencils; Error(out_of_memory)
template <class T>
CsrMatrix<T> generate_structure(std::string_view name, const Arguments& arguments, const GenerateOptions& options);

}  // namespace rmsp::io
