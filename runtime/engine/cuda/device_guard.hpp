#pragma once

#include <cuda_runtime.h>

namespace rmsp::engine {

/// Restores the calling thread's device: callers of the library may use CUDA themselves.
class DeviceGuard {
public:
    explicit DeviceGuard(int ordinal)
    {
        if (cudaGetDevice(&previous_) != cudaSuccess) {
            previous_ = -1;
        }
        if (previous_ != ordinal) {
            (void)cudaSetDevice(ordinal);
        }
    }
    ~DeviceGuard()
    {
        if (previous_ >= 0) {
            (void)cudaSetDevice(previous_);
        }
    }
    DeviceGuard(const DeviceGuard&) = delete;
    DeviceGuard& operator=(const DeviceGuard&) = delete;

private:
    int previous_ = -1;
};

}  // namespace rmsp::engine
