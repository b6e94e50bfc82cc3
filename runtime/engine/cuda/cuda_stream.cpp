#include "runtime/engine/cuda/cuda_stream.hpp"

#include <kernels/cuda_launch_list.cuh>

#include "runtime/engine/cuda/cuda_check.hpp"

namespace rmsp::engine {

CudaEvent::CudaEvent(bool timing)
{
    cuda_check(cudaEventCreateWithFlags(&event_, timing ? cudaEventDefault : cudaEventDisableTiming),
               "cudaEventCreate");
}

CudaEvent::~CudaEvent() { (void)cudaEventDestroy(event_); }

bool CudaEvent::ready() const
{
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return false;
    }
    cuda_check(status, "work on the GPU");
    return true;
}

void CudaEvent::synchronize() const { cuda_check(cudaEventSynchronize(event_), "work on the GPU"); }

double CudaEvent::seconds_since(const Event& earlier) const
{
    float milliseconds = 0;
    cuda_check(cudaEventElapsedTime(&milliseconds, dynamic_cast<const CudaEvent&>(earlier).event_, event_),
               "cudaEventElapsedTime");
    return milliseconds * 1e-3;
}

CudaStream::CudaStream(StreamPriority priority)
{
    int least = 0;
    int greatest = 0;
    cuda_check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    cuda_check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                            priority == StreamPriority::high ? greatest : least),
               "cudaStreamCreate");
}

CudaStream::~CudaStream() { (void)cudaStreamDestroy(stream_); }

void CudaStream::copy(void* dst, const void* src, std::size_t bytes)
{
    if (bytes > 0) {
        cuda_check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
    }
}

void CudaStream::record(Event& event)
{
    cuda_check(cudaEventRecord(dynamic_cast<CudaEvent&>(event).get(), stream_), "cudaEventRecord");
}

void CudaStream::wait(const Event& event)
{
    cuda_check(cudaStreamWaitEvent(stream_, dynamic_cast<const CudaEvent&>(event).get(), 0), "cudaStreamWaitEvent");
}

std::unique_ptr<kernels::LaunchList> CudaStream::make_launch_list()
{
    return std::make_unique<kernels::cuda::CudaLaunchList>(stream_);
}

void CudaStream::synchronize() { cuda_check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

}  // namespace rmsp::engine
