#pragma once

#include <string>

namespace rmsp::kernels::cusparse {

/// "12.6.3": of the cuSPARSE that kernels use, which this opens. Needs no GPU. \throws core::MissingLibrary
std::string version();

}  // namespace rmsp::kernels::cusparse
