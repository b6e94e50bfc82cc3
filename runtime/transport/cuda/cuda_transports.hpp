#pragma once

#include <chrono>
#include <memory>
#include <span>

#include "runtime/engine/worker.hpp"
#include "runtime/transport/transport.hpp"

/// The transports between GPUs. A build without CUDA has stand-ins that throw NotCompiled.
namespace rmsp::transport {

/// Peer memory over NVLink or PCIe, or the memory of a GPU that devices share; their kernels wait for each other only if `waits_on_shared`,
/// since whatever waits for the GPU while not all of them are queued would wait for ever. \throws Error(device) naming the first pair of GPUs that cannot reach each other
std::unique_ptr<Transport> make_peer_transport(std::span<const std::unique_ptr<engine::Worker>> workers,
                                               bool waits_on_shared = false);

/// NCCL with one communicator of all devices, made on the calling thread. What takes NCCL longer than `limit`, now or in a
/// gather, is an error, and so are devices that share a GPU. \throws Error(device), NotCompiled
std::unique_ptr<Transport> make_nccl_transport(std::span<const std::unique_ptr<engine::Worker>> workers,
                                               std::chrono::steady_clock::duration limit);

}  // namespace rmsp::transport
