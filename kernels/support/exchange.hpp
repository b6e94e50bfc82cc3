#pragma once

#include <cstdint>

#include <kernels/context.hpp>
#include <kernels/support/support.hpp>

/// What the devices of a node copy from each other's memory inside one kernel a device, ordered by flags in peer memory instead of
/// events: the kernels of all devices run at the same time and wait for each other. CUDA devices only.
namespace rmsp::kernels {

/// One device's dealings with one peer. A word is 8 bytes, on its device, 0 at first; its values only grow.
struct PeerLink {
    CopyPart in;                           ///< from the peer's memory to here; no bytes: nothing comes from there
    const std::uint64_t* ready = nullptr;  ///< here: the peer's data may be read
    const std::uint64_t* read = nullptr;   ///< here: the peer has read this device's data; null if it reads none
    std::uint64_t* peer_ready = nullptr;   ///< there: its `ready` of this device; null if it reads none
    std::uint64_t* peer_read = nullptr;    ///< there: its `read` of this device
};
/// Most links of one exchange.
inline constexpr int most_peer_links = 32;

/// One exchange of a device with its peers.
struct PeerExchange {
    PeerLink link[most_peer_links];
    int links = 0;
    /// Which exchange this is: the same on all devices, larger each time.
    std::uint64_t epoch = 0;
    /// Host memory that all devices read: exchanges up to this epoch are given up, since a device failed in them.
    const volatile std::uint64_t* given_up = nullptr;
    unsigned* arrived = nullptr;  ///< most_peer_links words here, 0 between exchanges
};

/// Queues one kernel that tells the peers that what was queued before is done, copies from each peer as soon as that has said
/// so too, and ends when the peers have read this device's data: what is queued behind it may overwrite those. The kernels of
/// all devices must be queued by threads that do not wait for each other meanwhile; until all run, they spin.
/// \throws Error(internal) for parts that are not aligned alike to 16 bytes
void exchange_with_peers(const PeerExchange& exchange, const Context& context);

}  // namespace rmsp::kernels
