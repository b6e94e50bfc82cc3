#include "runtime/engine/caller_memory.hpp"

#include <cstddef>
#include <vector>

#include "runtime/engine/cuda/cuda_check.hpp"
#include "runtime/engine/cuda/cuda_stream.hpp"
#include "runtime/engine/cuda/device_guard.hpp"

namespace rmsp::engine {
namespace {

class CudaCallerOrder final : public CallerOrder {
public:
    CudaCallerOrder(int gpu, void* stream, int devices) : gpu_(gpu), ends_(static_cast<std::size_t>(devices))
    {
        renew(stream);
    }
    void renew(void* stream) override
    {
        stream_ = static_cast<cudaStream_t>(stream);
        // An event is of the device that is current when it is made, and recorded on streams of that device alone.
        const DeviceGuard guard(gpu_);
        if (!before_) {
            before_ = std::make_unique<CudaEvent>(false);
        }
        cuda_check(cudaEventRecord(before_->get(), stream_), "cudaEventRecord on the caller's stream");
    }
    void begin(Worker& worker) override { worker.stream().wait(*before_); }
    void end(Worker& worker) override
    {
        auto& end = ends_[static_cast<std::size_t>(worker.rank())];
        if (!end) {
            end = std::make_unique<CudaEvent>(false);
        }
        worker.stream().record(*end);
    }
    void join() override
    {
        const DeviceGuard guard(gpu_);
        for (const auto& end : ends_) {
            if (end) {
                cuda_check(cudaStreamWaitEvent(stream_, end->get(), 0), "cudaStreamWaitEvent on the caller's stream");
            }
        }
    }

private:
    const int gpu_;
    cudaStream_t stream_ = nullptr;
    std::unique_ptr<CudaEvent> before_;
    std::vector<std::unique_ptr<CudaEvent>> ends_;
};

}  // namespace

int gpu_of(const void* p)
{
    cudaPointerAttributes attributes{};
    if (p == nullptr || cudaPointerGetAttributes(&attributes, p) != cudaSuccess) {
        (void)cudaGetLastError();
        return -1;
    }
    const bool there = attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
    return there ? attributes.device : -1;
}

void wait_for(int gpu, void* stream)
{
    const DeviceGuard guard(gpu);
    cuda_check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "the caller's stream");
}

std::shared_ptr<CallerOrder> order_by(int gpu, void* stream, int devices)
{
    return std::make_shared<CudaCallerOrder>(gpu, stream, devices);
}

}  // namespace rmsp::engine
