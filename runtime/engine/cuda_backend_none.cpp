#include "runtime/engine/cuda/cuda_backend.hpp"

namespace rmsp::engine {

std::vector<GpuDescription> cuda_gpus() { return {}; }

std::unique_ptr<Device> make_cuda_device(DeviceInfo, int, int) { throw NotCompiled("the CUDA backend"); }

std::map<std::string, std::string> cuda_versions() { return {}; }

std::vector<CudaLibrary> cuda_libraries() { return {}; }

bool enable_peer_access(Worker&, Worker&) { throw NotCompiled("the CUDA backend"); }

}  // namespace rmsp::engine
