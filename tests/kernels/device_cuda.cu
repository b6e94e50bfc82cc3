#include <cuda_runtime.h>
#include <kernels/cuda_check.cuh>

#include "test_device.hpp"

namespace rmsp::kernels::test {
namespace {

/// Plain cudaMalloc: each array is an allocation of its own, so compute-sanitizer sees accesses outside it.
class CudaMemory final : public Memory {
public:
    void* allocate(std::size_t bytes) override
    {
        void* p = nullptr;
        RMSP_CUDA_CHECK(cudaMalloc(&p, bytes));
        return p;
    }
    void deallocate(void* p, std::size_t /*bytes*/) noexcept override { static_cast<void>(cudaFree(p)); }
};

class CudaTestDevice final : public TestDevice {
public:
    CudaTestDevice()
    {
        RMSP_CUDA_CHECK(cudaSetDevice(0));
        RMSP_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        RMSP_CUDA_CHECK(cudaDeviceGetAttribute(&context_.compute_units, cudaDevAttrMultiProcessorCount, 0));
        context_.kind = DeviceKind::cuda;
        context_.stream = stream_;
        context_.memory = &memory_;
    }
    ~CudaTestDevice() override
    {
        static_cast<void>(cudaStreamSynchronize(stream_));
        static_cast<void>(cudaStreamDestroy(stream_));
    }
    Context& context() override { return context_; }
    void copy_in(void* device, const void* host, std::size_t bytes) override
    {
        RMSP_CUDA_CHECK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_));
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream_));
    }
    void copy_out(void* host, const void* device, std::size_t bytes) override
    {
        RMSP_CUDA_CHECK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_));
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream_));
    }

private:
    CudaMemory memory_;
    Context context_;
    cudaStream_t stream_ = nullptr;
};

}  // namespace

DeviceKind device_kind() { return DeviceKind::cuda; }

std::string device_missing()
{
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) {
        static_cast<void>(cudaGetLastError());
        return std::string("no GPU: ") + cudaGetErrorString(status);
    }
    return count > 0 ? "" : "no GPU";
}

std::unique_ptr<TestDevice> open_device() { return std::make_unique<CudaTestDevice>(); }

}  // namespace rmsp::kernels::test
