#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <rmsp/device_link.hpp>

/// What <rmsp/device_link.hpp> declares, of GPUs with these numbers. Only builds with CUDA have the first body, only
/// those with NCCL the others.
namespace rmsp::transport {

std::shared_ptr<DeviceAccess> cuda_device_access(const std::vector<int>& ordinals);

/// \throws core::MissingLibrary
std::string nccl_link_version();
std::vector<std::byte> make_nccl_link_id();
std::shared_ptr<DeviceLink> connect_nccl_link(const std::vector<int>& ordinals, const DeviceLinkOptions& options);

}  // namespace rmsp::transport
