#pragma once

#include <source_location>
#include <string>
#include <string_view>

#include <cuda_runtime.h>
#include <rmsp/error.hpp>

namespace rmsp::kernels::cuda {

/// "file.cu:123"
inline std::string file_line(const std::source_location& where)
{
    const std::string_view path = where.file_name();
    const std::size_t slash = path.find_last_of('/');
    return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1)) + ":" +
           std::to_string(where.line());
}

/// Clears the CUDA error, so that the next call does not report it again, and throws.
/// \throws Error(out_of_memory), else Error(device), naming the call, the error, file and line
inline void check(cudaError_t status, const char* call,
                  const std::source_location& where = std::source_location::current())
{
    if (status == cudaSuccess) {
        return;
    }
    static_cast<void>(cudaGetLastError());
    throw Error(status == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::device,
                std::string(call) + " failed at " + file_line(where) + ": " + cudaGetErrorName(status) + ", " +
                    cudaGetErrorString(status),
                where);
}

}  // namespace rmsp::kernels::cuda

#define RMSP_CUDA_CHECK(call) ::rmsp::kernels::cuda::check((call), #call)
/// After each launch; `kernel` is its name for the message.
#define RMSP_CUDA_CHECK_LAUNCH(kernel) ::rmsp::kernels::cuda::check(cudaGetLastError(), "launch of " kernel)
