#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/device.hpp"
#include "runtime/transport.hpp"
#include "runtime/worker.hpp"

/// What the runtime needs of CUDA, without its headers. A build without CUDA has stand-ins: no GPUs, NotCompiled transports.
namespace rmsp::runtime {

/// GPUs that CUDA offers to this process, by CUDA ordinal, with their PCI addresses. Empty without a driver. Creates no context.
std::vector<GpuDescription> cuda_gpus();

/// Opens a GPU; on the thread that will use it. \throws Error(device)
std::unique_ptr<Device> make_cuda_device(DeviceInfo info, int ordinal);

/// Peer memory over NVLink or PCIe. \throws Error(device) naming the first pair of GPUs that cannot reach each other
std::unique_ptr<Transport> make_peer_transport(std::span<const std::unique_ptr<Worker>> workers);

/// NCCL with one communicator of all devices, made on the calling thread. \throws Error(device), NotCompiled
std::unique_ptr<Transport> make_nccl_transport(std::span<const std::unique_ptr<Worker>> workers);

}  // namespace rmsp::runtime
