#pragma once

#include <rmsp/io.hpp>

#include "io/description.hpp"

namespace rmsp::io {

/// The stiffness of a bar of nx x ny x nz unit cubes (Young's modulus 1, Poisson's ratio 0.3), three displacements a
/// node, held at its end x = -1, whose nodes are left out: nx x (ny + 1) x (nz + 1) nodes have unknowns. Values are its
/// own, or ones. \throws Error(usage) for values of stencils; Error(out_of_memory)
template <class T>
CsrMatrix<T> elasticity(const Arguments& arguments, const GenerateOptions& options);

}  // namespace rmsp::io
