#pragma once

#include <chrono>

namespace rmsp::test {

/// What is queued on a stream of a GPU (a cudaStream_t) from now on begins so much later. False: built without CUDA.
bool queue_delay(void* stream, std::chrono::microseconds delay);

}  // namespace rmsp::test
