#pragma once

#include <cstdint>

#include <kernels/context.hpp>
#include <kernels/support/support.hpp>

/// What the devices of a node copy between each other's memory inside one kernel a device, ordered by flags in peer memory instead
/// of events: the kernels of all devices run at the same time and wait for each other. CUDA devices only.
namespace rmsp::kernels {

/// Entries of this device's slice of x that go to a peer one by one: to[i] = slice[list[i]].
struct PushPart {
    void* to = nullptr;  ///< the peer's memory
    const std::int32_t* list = nullptr;
    std::int64_t n = 0;
};

/// One device's dealings with one peer: the device copies what it needs of the peer's memory, or pushes what the peer needs into
/// that; all devices do the same. A word is 8 bytes, on its device, 0 at first; its values only grow.
struct PeerLink {
    CopyPart in;                           ///< from the peer's memory to here; no bytes: nothing
    PushPart out;                          ///< from here to the peer's memory; no entries: nothing
    const std::uint64_t* ready = nullptr;  ///< here: the peer's memory may be read, or written; null if it is neither
    std::uint64_t* peer_done = nullptr;    ///< there: its `done` of this device
    const std::uint64_t* done =
        nullptr;  ///< here: the peer has read, or written, this device's memory; null if it does neither
    std::uint64_t* peer_ready = nullptr;  ///< there: its `ready` of this device
};
/// Most links of one exchange.
inline constexpr int most_peer_links = 32;

/// One exchange of a device with its peers.
struct PeerExchange {
    PeerLink link[most_peer_links];
    int links = 0;
    const void* slice = nullptr;  ///< what the pushed entries are counted from
    int entry_bytes = 0;          ///< of them: 4 or 8
    /// Which exchange this is: the same on all devices, larger each time.
    std::uint64_t epoch = 0;
    /// Host memory that all devices read: exchanges up to this epoch are given up, since a device failed in them.
    const volatile std::uint64_t* given_up = nullptr;
    unsigned* arrived = nullptr;  ///< most_peer_links words here, 0 between exchanges
};

/// Queues one kernel that tells the peers that what was queued before is done, copies from each peer, or pushes to it, as soon as
/// that has said so too, and ends when the peers have done the same here: what is queued behind it may read what they pushed, and
/// overwrite what they copied. The kernels of
/// all devices must be queued by threads that do not wait for each other meanwhile; until all run, they spin.
/// \throws Error(internal) for parts that are not aligned alike to 16 bytes
void exchange_with_peers(const PeerExchange& exchange, const Context& context);

}  // namespace rmsp::kernels
