#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

#include <cuda_runtime.h>

#include <kernels/cuda_check.cuh>

namespace rmsp::kernels::cuda {

/// Lets a kernel be launched with so many bytes of dynamic shared memory on the current device. Workers that share a
/// device launch it with different numbers: what was allowed once stays allowed, whoever asks for less.
inline void allow_shared_bytes(const void* kernel, std::size_t bytes)
{
    static std::mutex mutex;
    static std::map<std::pair<int, const void*>, std::size_t> allowed;
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    const std::lock_guard lock(mutex);
    std::size_t& most = allowed[{device, kernel}];
    if (bytes > most) {
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
              "cudaFuncSetAttribute");
        most = bytes;
    }
}

}  // namespace rmsp::kernels::cuda
