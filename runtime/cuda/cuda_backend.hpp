#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/device.hpp"
#include "runtime/transport.hpp"
#include "runtime/worker.hpp"

/// What the runtime needs of CUDA, without its headers. A build without CUDA has stand-ins: no GPUs, NotCompiled transports.
namespace rmsp::runtime {

/// GPUs that CUDA offers to this process, by CUDA ordinal, with their PCI addresses. Empty without a driver. Creates no context.
std::vector<GpuDescription> cuda_gpus();

/// Opens a GPU; on the thread that will use it. `sharers` devices of a runtime stand on it: each has its share of the memory and of the
/// multiprocessors, by which kernels size their grids. \throws Error(device)
std::unique_ptr<Device> make_cuda_device(DeviceInfo info, int ordinal, int sharers = 1);

/// Of the driver and the CUDA libraries that this build uses: "driver", "CUDA driver", "CUDA runtime", "cuSPARSE", "NCCL".
std::map<std::string, std::string> cuda_versions();

/// Lets the worker's GPU reach the memory of the other's, which may be the same; on the worker. False if it cannot. \throws Error(device)
bool enable_peer_access(Worker& worker, Worker& other);

/// Peer memory over NVLink or PCIe, or the memory of a GPU that devices share; their kernels wait for each other only if `waits_on_shared`,
/// since whatever waits for the GPU while not all of them are queued would wait for ever. \throws Error(device) naming the first pair of GPUs that cannot reach each other
std::unique_ptr<Transport> make_peer_transport(std::span<const std::unique_ptr<Worker>> workers,
                                               bool waits_on_shared = false);

/// NCCL with one communicator of all devices, made on the calling thread. What takes NCCL longer than `limit`, now or in a
/// gather, is an error, and so are devices that share a GPU. \throws Error(device), NotCompiled
std::unique_ptr<Transport> make_nccl_transport(std::span<const std::unique_ptr<Worker>> workers,
                                               std::chrono::steady_clock::duration limit);

}  // namespace rmsp::runtime
