#pragma once

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "runtime/engine/cuda/nccl.hpp"

namespace rmsp::transport {

/// Checks a call on non-blocking communicators, which may still be at work on it. \throws Error(device)
inline void nccl_check(ncclResult_t status, const char* call)
{
    if (status != ncclSuccess && status != ncclInProgress) {
        throw Error(ErrorCode::device, fmt::format("{}: {} ({})", call, engine::nccl().ncclGetErrorString(status),
                                                   engine::nccl().ncclGetLastError(nullptr)));
    }
}

}  // namespace rmsp::transport
