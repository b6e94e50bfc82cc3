#pragma once

#include <rmsp/io.hpp>

#include "io/description.hpp"

namespace rmsp::io {

/// The vertices of a mesh of tetrahedra, of irregular degree, in a box of nx x ny x nz cells that has holes; numbered
/// as a sweep through the box meets them. \throws Error(usage) for too many cells; Error(out_of_memory)
template <class T>
CsrMatrix<T> unstructured(const Arguments& arguments, const GenerateOptions& options);

}  // namespace rmsp::io
