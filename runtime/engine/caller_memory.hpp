#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

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
    /// Puts another job behind what is on that stream now, which is of the same GPU. After the job before was joined,
    /// or is over.
    virtual void renew(void* stream) = 0;
    /// What the worker's stream gets from now on waits for what was on the caller's stream when this was made, or
    /// renewed.
    virtual void begin(Worker& worker) = 0;
    /// Marks the end of the job on the worker's stream.
    virtual void end(Worker& worker) = 0;
    /// What the caller's stream gets from now on waits for the ends. On the caller's thread, once every worker has
    /// called end().
    virtual void join() = 0;
};

/// \throws Error(device)
std::shared_ptr<CallerOrder> order_by(int gpu, void* stream, int devices);

/// Those of a runtime. They are used again: to make events takes as long as a small product.
class CallerOrders {
public:
    CallerOrders() { spare_.reserve(most); }
    /// As order_by(), for all of the runtime's devices. By any thread.
    std::shared_ptr<CallerOrder> take(int gpu, void* stream, int devices);
    /// Once neither a worker nor the caller has anything more to do with it.
    void give_back(int gpu, std::shared_ptr<CallerOrder> order) noexcept;

private:
    /// Those of threads that call at the same time.
    static constexpr std::size_t most = 16;
    struct Spare {
        int gpu;
        std::shared_ptr<CallerOrder> order;
    };
    std::mutex mutex_;
    std::vector<Spare> spare_;
};

}  // namespace rmsp::engine
