#include "runtime/cuda/cuda_backend.hpp"

namespace rmsp::runtime {

std::vector<GpuDescription> cuda_gpus() { return {}; }

std::unique_ptr<Device> make_cuda_device(DeviceInfo, int, int) { throw NotCompiled("the CUDA backend"); }

std::map<std::string, std::string> cuda_versions() { return {}; }

bool enable_peer_access(Worker&, Worker&) { throw NotCompiled("the CUDA backend"); }

std::unique_ptr<Transport> make_peer_transport(std::span<const std::unique_ptr<Worker>>, bool)
{
    throw NotCompiled("the peer transport");
}

std::unique_ptr<Transport> make_nccl_transport(std::span<const std::unique_ptr<Worker>>,
                                               std::chrono::steady_clock::duration)
{
    throw NotCompiled("the NCCL transport");
}

}  // namespace rmsp::runtime
