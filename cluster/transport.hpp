#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <rmsp/device_link.hpp>
#include <rmsp/runtime.hpp>

#include "cluster/communicator.hpp"
#include "cluster/halo.hpp"

namespace rmsp::cluster {

/// The same on all processes.
struct Connected {
    std::string why_not{};               ///< set: they cannot be connected that way
    std::shared_ptr<DeviceLink> link{};  ///< null: none is needed
    std::vector<int> first_devices{};    ///< of each process in the link, and how many there are
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

/// Brings entries from GPU to GPU, each from the one that has it to one that multiplies with it; by messages through
/// host memory once the link is given up.
class DeviceExchange final : public HaloExchange {
public:
    DeviceExchange(const std::shared_ptr<Communicator>& processes, std::vector<Neighbour> receives,
                   std::vector<Neighbour> sends, std::size_t entry_bytes);
    bool on_devices() const override { return true; }
    DevicePlaces place(std::span<const int> sent, std::span<const int> ghosts, int devices) override;
    void begin(const void* send, void* receive, bool backwards) override;
    void begin_on(std::span<const DeviceArrays> devices, bool backwards) override;
    bool in_stream_order() const override { return !by_messages_ && link_->in_stream_order(); }
    void end() override;

private:
    /// Entries that leave, or arrive.
    struct Side {
        std::vector<LinkMessages> messages;  ///< of each GPU here
        std::vector<std::size_t> first;      ///< of each GPU, and all: its array, where these lie one behind the other
        std::vector<std::size_t> place;      ///< of each entry, there
    };
    /// \param places  becomes LinkedEntries::places
    static Side side_of(std::span<const int> here, std::span<const int> there, int devices,
                        std::vector<std::int64_t>& places);
    /// Copies the arrays of all GPUs to `staged_`, or from there.
    void copy_from_devices(const Side& side);
    void copy_to_devices(const Side& side);

    const std::shared_ptr<DeviceLink> link_;
    const std::vector<Neighbour> receives_;
    const std::vector<Neighbour> sends_;
    const std::size_t entry_bytes_;
    Messages messages_;
    Side sent_;
    Side ghosts_;
    // Of an exchange by messages:
    bool by_messages_ = false;
    bool backwards_ = false;
    std::vector<DeviceArrays> devices_;
    std::vector<std::byte> staged_;  ///< what the GPUs have
    std::vector<std::byte> out_;     ///< the same entries in the order of messages
    std::vector<std::byte> in_;
};

}  // namespace rmsp::cluster
