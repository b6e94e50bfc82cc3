#pragma once

#include <cstddef>

#include <cuda_runtime.h>

#include <kernels/context.hpp>
#include <kernels/cuda_launch_list.cuh>

namespace rmsp::kernels::cuda {

/// Waits until the kernel before this one in the stream is done and what it wrote can be seen. In a kernel launched by
/// launch_early(), before anything is read or written that another kernel may have to do with; elsewhere it does
/// nothing.
__device__ __forceinline__ void wait_for_kernel_before()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the thread blocks of the kernel behind this one in the stream be placed where those of this one have ended,
/// once all of these have come here or ended. Changes nothing of the order of their work: that kernel waits in
/// wait_for_kernel_before().
__device__ __forceinline__ void let_kernel_behind_start()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// Launches a kernel whose thread blocks may be placed while the last ones of the kernel before it in the stream still
/// run, which hides the launch behind them (CUDA's programmatic dependent launch). It must call
/// wait_for_kernel_before(). On the current device. \throws as check(), naming the kernel
template <class... Parameters, class... Arguments>
void launch_early(const char* name, void (*kernel)(Parameters...), dim3 blocks, int threads, std::size_t shared_bytes,
                  cudaStream_t stream, const Arguments&... arguments)
{
    const auto launch = [&](Parameters... converted) {
        void* addresses[] = {&converted...};
        launch_early_with(name, reinterpret_cast<const void*>(kernel), blocks, dim3(static_cast<unsigned>(threads)),
                          shared_bytes, stream, addresses);
    };
    launch(static_cast<Parameters>(arguments)...);
}

/// launch_early() without dynamic shared memory.
template <class... Parameters, class... Arguments>
void launch_early(const char* name, void (*kernel)(Parameters...), dim3 blocks, int threads, cudaStream_t stream,
                  const Arguments&... arguments)
{
    launch_early(name, kernel, blocks, threads, std::size_t{0}, stream, arguments...);
}

/// launch_early() on the context's stream, or later, where Context::launches keeps it. `name` is static text.
template <class... Parameters, class... Arguments>
void launch_early(const char* name, void (*kernel)(Parameters...), dim3 blocks, int threads, std::size_t shared_bytes,
                  const Context& context, const Arguments&... arguments)
{
    auto* const list = static_cast<CudaLaunchList*>(context.launches);
    if (list == nullptr || !list->keep(name, kernel, blocks, threads, shared_bytes, arguments...)) {
        launch_early(name, kernel, blocks, threads, shared_bytes, static_cast<cudaStream_t>(context.stream),
                     arguments...);
    }
}
template <class... Parameters, class... Arguments>
void launch_early(const char* name, void (*kernel)(Parameters...), dim3 blocks, int threads, const Context& context,
                  const Arguments&... arguments)
{
    launch_early(name, kernel, blocks, threads, std::size_t{0}, context, arguments...);
}

}  // namespace rmsp::kernels::cuda
