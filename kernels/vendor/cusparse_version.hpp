#pragma once

#include <string>

namespace rmsp::kernels::cusparse {

/// "12.6.3": of the cuSPARSE that kernels use, which this opens. Needs no GPU. \throws core::MissingLibrary
std::string version();

/// Whether the headers of cuSPARSE that this build saw have SpMVOp: from 12.8 on.
#ifdef RMSP_HAVE_CUDA
bool has_spmvop() noexcept;
#else
constexpr bool has_spmvop() noexcept { return false; }
#endif

}  // namespace rmsp::kernels::cusparse
