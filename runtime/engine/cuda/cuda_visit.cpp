#include <cuda.h>
#include <cuda_runtime.h>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "runtime/engine/cuda/cuda_device.hpp"

/// Threads of callers that queue work on a GPU in its worker's place.
namespace rmsp::engine {
namespace {

/// Functions of the driver that the runtime has no like of, found by the runtime: nothing is linked.
struct Driver {
    decltype(&cuCtxGetCurrent) get_current = nullptr;
    decltype(&cuCtxPushCurrent) push = nullptr;
    decltype(&cuCtxPopCurrent) pop = nullptr;
    decltype(&cuThreadExchangeStreamCaptureMode) exchange_capture_mode = nullptr;

    bool complete() const noexcept
    {
        return get_current != nullptr && push != nullptr && pop != nullptr && exchange_capture_mode != nullptr;
    }
};

template <class Function>
void find_in_driver(const char* name, Function& function) noexcept
{
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    constexpr unsigned interface_version = 12000;
    const cudaError_t status =
        cudaGetDriverEntryPointByVersion(name, &found, interface_version, cudaEnableDefault, &result);
#else
    const cudaError_t status = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
    if (status != cudaSuccess) {
        (void)cudaGetLastError();
    } else if (result == cudaDriverEntryPointSuccess) {
        function = reinterpret_cast<Function>(found);
    }
}

/// Looked for once; what the driver lacks is null.
const Driver& driver() noexcept
{
    static const Driver found = [] {
        Driver functions;
        find_in_driver("cuCtxGetCurrent", functions.get_current);
        find_in_driver("cuCtxPushCurrent", functions.push);
        find_in_driver("cuCtxPopCurrent", functions.pop);
        find_in_driver("cuThreadExchangeStreamCaptureMode", functions.exchange_capture_mode);
        return functions;
    }();
    return found;
}

}  // namespace

bool CudaDevice::open_to_callers()
{
    return driver().complete() && driver().get_current(&context_) == CUDA_SUCCESS && context_ != nullptr;
}

bool CudaDevice::admits_this_thread() const noexcept
{
    // An error of the caller's own calls that he has not asked for yet would be taken for one of a kernel's launch.
    return cudaPeekAtLastError() == cudaSuccess;
}

Visit CudaDevice::enter()
{
    // The context and not the device: to set a thread back to a device on which nothing has been done makes a context
    // there, and the caller's may be one that he has made himself.
    Visit visit;
    CUcontext current = nullptr;
    const CUresult known = driver().get_current(&current);
    if (known == CUDA_SUCCESS && current != context_) {
        visit.pushed = driver().push(context_) == CUDA_SUCCESS;
    }
    if (known != CUDA_SUCCESS || (current != context_ && !visit.pushed)) {
        throw Error(ErrorCode::device, fmt::format("GPU {} cannot be made the calling thread's current one", ordinal_));
    }
    // A caller who captures a graph on a stream of his own may ask for products as before: they are no part of it.
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)driver().exchange_capture_mode(&mode);
    visit.capture_mode = static_cast<int>(mode);
    return visit;
}

void CudaDevice::leave(const Visit& visit) noexcept
{
    auto mode = static_cast<CUstreamCaptureMode>(visit.capture_mode);
    (void)driver().exchange_capture_mode(&mode);
    if (visit.pushed) {
        CUcontext popped = nullptr;
        (void)driver().pop(&popped);
    }
}

}  // namespace rmsp::engine
