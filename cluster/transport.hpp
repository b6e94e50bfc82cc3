#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <rmsp/device_link.hpp>
#include <rmsp/runtime.hpp>

#include "cluster/communicator.hpp"
#include "cluster/halo.hpp"

namespace rmsp::cluster {

/// The same on all processes.
struct Connected {
    std::string why_not{};               ///< set: they cannot be connected that way
    std::shared_ptr<DeviceLink> link{};  ///< null: none is needed
    bool gathers = false;                ///< it is for sums of solvers too
};

/// What connect_processes() knows of one way in which entries travel between processes.
struct TransportRow {
    const char* name;
    /// Connects the processes, which all call it.
    Connected (*connect)(Communicator& processes, const Runtime& runtime);
};

/// In the order in which they are tried. The last one always works.
std::span<const TransportRow> transports();

/// \throws Error(usage) unless a row has that name, or it is "auto"
void require_transport(const std::string& name);
/// -1: "auto".
std::int64_t place_of_transport(const std::string& name);

/// Connects the processes by the transport of that name, or else by the first one that works. Collective.
void connect_processes(Communicator& processes, const Runtime& runtime, const std::string& wanted);

/// Brings entries from GPU to GPU; by messages through host memory once the link is given up.
class DeviceExchange final : public HaloExchange {
public:
    DeviceExchange(const std::shared_ptr<Communicator>& processes, std::vector<Neighbour> receives,
                   std::vector<Neighbour> sends, std::size_t entry_bytes);
    bool on_device() const override { return true; }
    void begin(const void* send, void* receive, bool backwards) override;
    void begin_on(void* stream, const void* send, void* receive, bool backwards) override;
    bool in_stream_order() const override { return !by_messages_; }
    void end() override;

private:
    std::int64_t bytes(const std::vector<Neighbour>& all) const;

    const std::shared_ptr<DeviceLink> link_;
    const std::vector<Neighbour> receives_;
    const std::vector<Neighbour> sends_;
    const std::size_t entry_bytes_;
    Messages messages_;
    // Of an exchange by messages:
    bool by_messages_ = false;
    void* stream_ = nullptr;
    void* to_ = nullptr;
    std::vector<std::byte> out_;
    std::vector<std::byte> in_;
};

}  // namespace rmsp::cluster
