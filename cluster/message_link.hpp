#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rmsp/device_link.hpp>

#include "cluster/communicator.hpp"
#include "cluster/transfer.hpp"

namespace rmsp::cluster {

/// Whether the MPI says that it takes memory of GPUs. Empty: it does; else why not.
std::string why_not_gpu_aware();

/// A link by messages from the memory of a device to that of another one, each between two of them, which an MPI sends
/// that is GPU-aware. Not in the order of streams: a message leaves once what is queued on the stream is done, and what
/// has come is there after end().
class MessageLink final : public DeviceLink {
public:
    /// \param first_devices  number of each process's first device, and of all
    MessageLink(Communicator& processes, std::shared_ptr<DeviceAccess> devices, std::vector<int> first_devices);

    void begin(std::span<const DeviceArrays> devices, std::span<const LinkMessages> to,
               std::span<const LinkMessages> from, std::size_t entry_bytes) override;
    void end() override;
    bool in_stream_order() const override { return false; }
    void gather(std::span<const DeviceArrays> devices, std::size_t bytes) override;
    void copy(int device, void* stream, void* to, const void* from, std::size_t bytes) override
    {
        devices_->copy(device, stream, to, from, bytes);
    }
    void give_up() noexcept override;
    bool usable() const noexcept override { return usable_; }

    /// How long end() waits before this process alone gives up; 0: as long as for everything.
    void wait_at_most(double seconds) noexcept { seconds_ = seconds; }

private:
    Communicator& processes_;
    const std::shared_ptr<DeviceAccess> devices_;
    const std::vector<int> first_devices_;
    std::optional<Transfer> transfer_;  ///< has begun
    double seconds_ = 0;
    bool usable_ = true;
};

}  // namespace rmsp::cluster
