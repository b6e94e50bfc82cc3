#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/device.hpp"
#include "runtime/engine/worker.hpp"

/// What the runtime needs of CUDA, without its headers. A build without CUDA has stand-ins: no GPUs.
namespace rmsp::engine {

/// GPUs that CUDA offers to this process, by CUDA ordinal, with their PCI addresses. Empty without a driver. Creates no
/// context.
std::vector<GpuDescription> cuda_gpus();

/// Opens a GPU; on the thread that will use it. `sharers` devices of a runtime stand on it: each has its share of the
/// memory and of the multiprocessors, by which kernels size their grids. \throws Error(device)
std::unique_ptr<Device> make_cuda_device(DeviceInfo info, int ordinal, int sharers = 1);

/// Of the driver and the CUDA libraries that this build uses: "driver", "CUDA driver", "CUDA runtime", "cuSPARSE",
/// "NCCL". "not found" says that a machine lacks one. Opens cuSPARSE and NCCL.
std::map<std::string, std::string> cuda_versions();

/// A library that is opened when it is first needed.
struct CudaLibrary {
    std::string name;         ///< "cuSPARSE"
    std::string version;      ///< empty if it is missing
    std::string why_missing;  ///< with who has it
};
/// Those that this build uses. Opens them.
std::vector<CudaLibrary> cuda_libraries();

/// Lets the worker's GPU reach the memory of the other's, which may be the same; on the worker. False if it cannot.
/// \throws Error(device)
bool enable_peer_access(Worker& worker, Worker& other);

}  // namespace rmsp::engine
