#include "runtime/engine/cuda/cuda_check.hpp"

#include <fmt/format.h>

#include <rmsp/error.hpp>

namespace rmsp::engine {

void cuda_check(cudaError_t status, const char* call, std::source_location where)
{
    if (status == cudaSuccess) {
        return;
    }
    (void)cudaGetLastError();
    throw Error(status == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::device,
                fmt::format("{}: {} ({})", call, cudaGetErrorString(status), cudaGetErrorName(status)), where);
}

}  // namespace rmsp::engine
