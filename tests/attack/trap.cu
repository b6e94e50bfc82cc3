#include "trap.hpp"

#include <cuda_runtime.h>

namespace {

__global__ void trap_kernel() { __trap(); }

}  // namespace

void queue_trap(void* stream) { trap_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(); }

void make_current(int gpu) { (void)cudaSetDevice(gpu); }
