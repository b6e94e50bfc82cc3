#pragma once

#include <cuda_runtime.h>

namespace rmsp::kernels {

/// All threads of the grid, which is one wave, and was launched as such (cudaLaunchCooperativeKernel). What was written
/// before is seen after it.
class GridBarrier {
public:
    __device__ explicit GridBarrier(unsigned* arrived) : arrived_(arrived) {}
    __device__ void wait()
    {
        __syncthreads();
        if (threadIdx.x == 0) {
            goal_ += gridDim.x;
            __threadfence();
            atomicAdd(arrived_, 1u);
            unsigned arrived = 0;
            do {
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(arrived_) : "memory");
            } while (static_cast<int>(arrived - goal_) < 0);
            __threadfence();
        }
        __syncthreads();
    }

private:
    unsigned* arrived_;
    unsigned goal_ = 0;
};

}  // namespace rmsp::kernels
