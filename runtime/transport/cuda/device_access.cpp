#include <cuda_runtime.h>

#include <utility>

#include "runtime/engine/cuda/cuda_check.hpp"
#include "runtime/engine/cuda/device_guard.hpp"
#include "runtime/transport/cuda/device_link.hpp"

namespace rmsp::transport {
namespace {

using engine::cuda_check;
using engine::DeviceGuard;

class CudaDeviceAccess final : public DeviceAccess {
public:
    explicit CudaDeviceAccess(std::vector<int> ordinals) : ordinals_(std::move(ordinals)) {}

    int devices() const override { return static_cast<int>(ordinals_.size()); }
    void copy(int device, void* stream, void* to, const void* from, std::size_t bytes) override
    {
        const DeviceGuard guard(ordinal(device));
        auto* const queue = static_cast<cudaStream_t>(stream);
        if (bytes > 0) {
            cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue), "cudaMemcpyAsync");
        }
        cuda_check(cudaStreamSynchronize(queue), "cudaStreamSynchronize");
    }
    std::shared_ptr<void> allocate(int device, std::size_t bytes) override
    {
        const int of = ordinal(device);
        const DeviceGuard guard(of);
        void* memory = nullptr;
        cuda_check(cudaMalloc(&memory, bytes), "cudaMalloc");
        return {memory, [of](void* p) {
                    const DeviceGuard there(of);
                    (void)cudaFree(p);
                }};
    }
    std::shared_ptr<void> make_stream(int device) override
    {
        const int of = ordinal(device);
        const DeviceGuard guard(of);
        cudaStream_t stream = nullptr;
        cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
        return {stream, [of](void* p) {
                    const DeviceGuard there(of);
                    (void)cudaStreamDestroy(static_cast<cudaStream_t>(p));
                }};
    }
    void visit(int device, const std::function<void()>& f) override
    {
        const DeviceGuard guard(ordinal(device));
        f();
    }

private:
    int ordinal(int device) const { return ordinals_[static_cast<std::size_t>(device)]; }

    const std::vector<int> ordinals_;
};

}  // namespace

std::shared_ptr<DeviceAccess> cuda_device_access(const std::vector<int>& ordinals)
{
    return std::make_shared<CudaDeviceAccess>(ordinals);
}

}  // namespace rmsp::transport
