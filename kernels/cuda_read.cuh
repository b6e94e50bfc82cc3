#pragma once

#include <cstddef>
#include <type_traits>

#include <cuda_runtime.h>

namespace rmsp::kernels::cuda {

/// Copies so many bytes of the device's memory to the host's, once the stream has come so far; waits for it. What is no
/// more than a few kilobytes passes through pinned memory of this thread, which takes less time than pageable memory.
/// \throws Error(device)
void read(void* to, const void* from, std::size_t bytes, cudaStream_t stream);

/// One of the device's objects, as read() above.
template <class E>
E read(const E* from, cudaStream_t stream)
{
    static_assert(std::is_trivially_copyable_v<E>);
    E value;
    read(&value, from, sizeof(E), stream);
    return value;
}

}  // namespace rmsp::kernels::cuda
