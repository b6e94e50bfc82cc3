#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/engine/worker.hpp"
#include "runtime/transport/transport.hpp"

/// What a transport says of itself in its row of the table.
namespace rmsp::transport {

/// How long NCCL, or the transfers of a test, may take before they count as hung.
inline constexpr std::chrono::seconds communication_limit{30};

/// How a transport is to connect devices.
struct ConnectOptions {
    std::chrono::steady_clock::duration limit = communication_limit;  ///< of everything that the host waits for
    /// Kernels on a shared GPU wait for each other too. Whatever waits for that GPU while not all of them are queued
    /// would then wait for ever.
    bool waits_on_shared = false;
};

/// What transports are asked about the devices of a runtime.
struct DeviceFacts {
    int devices = 0;
    bool share_memory = false;   ///< with the host and each other
    bool share_gpus = false;     ///< some of them are one GPU
    bool all_reachable = false;  ///< each can read the memory of every other
};

struct TransportRow {
    const char* name;  ///< what configuration calls it
    /// Connects the devices. Null if this build lacks it. \throws Error(device) if they cannot be connected that way
    std::unique_ptr<Transport> (*connect)(std::span<const std::unique_ptr<engine::Worker>> workers,
                                          const ConnectOptions& options);
    double latency;           ///< seconds of a reduction that moves nothing
    double bytes_per_second;  ///< that one device receives while all do
    bool peer_memory =
        false;  ///< devices read and write each other's memory: all must be reachable, over links that work
    bool each_gpu_once = false;  ///< no two devices may be one GPU
    /// Everything goes through the host's memory: over the links that uploads use, between any devices, also if one
    /// thread serves all.
    bool through_host = false;

    /// Predicted seconds of a reduction in which one device receives at most that many bytes.
    double seconds(std::int64_t received_bytes) const noexcept
    {
        return latency + static_cast<double>(received_bytes) / bytes_per_second;
    }
    /// Why such devices are not connected that way; empty if they may be.
    std::string why_skipped(const DeviceFacts& facts) const;
};

}  // namespace rmsp::transport
