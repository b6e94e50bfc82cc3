#pragma once

#include <cuda_runtime.h>

#include <source_location>

namespace rmsp::engine {

/// Throws Error(out_of_memory or device) with the call's name if `status` is an error; the CUDA error state is cleared
/// first.
void cuda_check(cudaError_t status, const char* call, std::source_location where = std::source_location::current());

}  // namespace rmsp::engine
