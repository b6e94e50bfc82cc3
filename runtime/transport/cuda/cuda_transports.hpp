#pragma once

#include <memory>
#include <span>

#include "runtime/transport/row.hpp"

/// The transports between GPUs. Only builds with CUDA, and with NCCL, have their bodies.
namespace rmsp::transport {

/// Peer memory over NVLink or PCIe, or the memory of a GPU that devices share. \throws Error(device) naming the first
/// pair of GPUs that cannot reach each other
std::unique_ptr<Transport> connect_peer_transport(std::span<const std::unique_ptr<engine::Worker>> workers,
                                                  const ConnectOptions& options);

/// NCCL with one communicator of all devices, made on the calling thread. What takes NCCL longer than the limit, now or
/// in a gather, is an error, and so are devices that share a GPU. \throws Error(device)
std::unique_ptr<Transport> connect_nccl_transport(std::span<const std::unique_ptr<engine::Worker>> workers,
                                                  const ConnectOptions& options);

}  // namespace rmsp::transport
