#pragma once

#include <memory>

#include "runtime/engine/worker.hpp"

/// Memory and streams of GPUs that are the caller's. A build without CUDA has stand-ins: no memory is a GPU's.
namespace rmsp::engine {

/// The GPU, by its CUDA ordinal, whose memory this is: device memory of any kind, or managed. -1: the host's, pinned or
/// not. Any thread; makes no context.
int gpu_of(const void* p);

/// Blocks until what the caller queued on a stream of that GPU (null: its default stream) has ended.
/// \throws Error(device)
void wait_for(int gpu, void* stream);

/// Puts one job between what the caller queued on a stream and what is queued there afterwards.
class CallerOrder {
public:
    virtual ~CallerOrder() = default;
    /// What the worker's stream gets from now on waits for what was on the caller's stream when this was made.
    virtual void begin(Worker& worker) = 0;
    /// Marks the end of the job on the worker's stream.
    virtual void end(Worker& worker) = 0;
    /// What the caller's stream gets from now on waits for the ends. On the caller's thread, once every worker has
    /// called end().
    virtual void join() = 0;
};

/// \throws Error(device)
std::shared_ptr<CallerOrder> order_by(int gpu, void* stream, int devices);

}  // namespace rmsp::engine
