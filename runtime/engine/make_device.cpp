#include "runtime/engine/make_device.hpp"

#include "runtime/engine/cuda/cuda_backend.hpp"
#include "runtime/engine/host/host_device.hpp"

namespace rmsp::engine {

std::unique_ptr<Device> make_device(const DeviceInfo& info, int sharers)
{
    return info.kind == DeviceKind::cuda ? make_cuda_device(info, info.index, sharers) : make_host_device(info);
}

}  // namespace rmsp::engine
