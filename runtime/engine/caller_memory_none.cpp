#include "runtime/engine/caller_memory.hpp"

namespace rmsp::engine {

int gpu_of(const void*) { return -1; }

void wait_for(int, void*) { throw NotCompiled("the CUDA backend"); }

std::shared_ptr<CallerOrder> order_by(int, void*, int) { throw NotCompiled("the CUDA backend"); }

}  // namespace rmsp::engine
