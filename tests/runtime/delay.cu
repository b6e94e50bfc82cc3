#include <cstdint>
#include <thread>

#include <cuda_runtime.h>

#include "delay.hpp"

namespace rmsp::test {

bool queue_delay(void* stream, std::chrono::microseconds delay)
{
    const auto sleep = [](void* microseconds) {
        std::this_thread::sleep_for(std::chrono::microseconds(reinterpret_cast<std::intptr_t>(microseconds)));
    };
    return cudaLaunchHostFunc(static_cast<cudaStream_t>(stream), sleep,
                              reinterpret_cast<void*>(static_cast<std::intptr_t>(delay.count()))) == cudaSuccess;
}

}  // namespace rmsp::test
