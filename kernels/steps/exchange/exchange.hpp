#pragma once

#include <cstdint>

#include <kernels/steps/step.hpp>
#include <kernels/steps/support/support.hpp>

/// What the devices of a node copy between each other's memory inside one kernel a device, ordered by flags in peer
/// memory instead of events: the kernels of all devices run at the same time and wait for each other. CUDA devices
/// only.
namespace rmsp::kernels {

/// Entries of this device's slice of x that go to a peer one by one: to[i] = slice[list[i]].
struct PushPart {
    void* to = nullptr;  ///< the peer's memory
    const std::int32_t* list = nullptr;
    std::int64_t n = 0;
};

/// One device's dealings with one peer: the device copies what it needs of the peer's memory, or pushes what the peer
/// needs into that; all devices do the same. A word is 8 bytes, on its device, 0 at first; its values only grow.
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

/// What one exchange of a device has in common for all its peers.
struct PeerExchangeTerms {
    const void* slice = nullptr;  ///< what the pushed entries are counted from
    int entry_bytes = 0;          ///< of them: 4 or 8
    /// Which exchange this is: the same on all devices, larger each time.
    std::uint64_t epoch = 0;
    /// Host memory that all devices read: exchanges up to this epoch are given up, since a device failed in them.
    const volatile std::uint64_t* given_up = nullptr;
    unsigned* arrived = nullptr;  ///< most_peer_links words here, 0 between exchanges
};

/// One exchange of a device with its peers.
struct PeerExchange {
    PeerExchangeTerms terms;
    PeerLink link[most_peer_links];
    int links = 0;
};

/// Bytes of the lines that carry `bytes` of data: 12 bytes and a tag each, at least one.
constexpr std::int64_t line_bytes(std::int64_t bytes)
{
    constexpr std::int64_t carried = 12;
    return 16 * (bytes > carried ? (bytes + carried - 1) / carried : 1);
}

/// One device's dealings with one peer by lines, which say themselves that they have arrived. Bytes are multiples of 4,
/// places aligned to 4. Where nothing is sent or received, an empty line is.
struct LineLink {
    const void* from = nullptr;                    ///< here: what the peer needs,
    const std::int32_t* list = nullptr;            ///< entries of it, or null: all, in their order
    std::int64_t bytes_out = 0;                    ///< of the data
    void* lines_out = nullptr;                     ///< there: lines of this exchange
    const void* lines_in[2] = {nullptr, nullptr};  ///< here: those of the peer's, which uses them in turn; 0 at first
    void* to = nullptr;                            ///< here: where the data go
    std::int64_t bytes_in = 0;                     ///< of the data
};

/// What one exchange by lines has in common for all peers.
struct LineExchangeTerms {
    int entry_bytes = 0;      ///< of listed entries: 4 or 8
    std::uint64_t epoch = 0;  ///< as PeerExchangeTerms::epoch; its low 32 bits, not all 0, are the tag
    const volatile std::uint64_t* given_up = nullptr;  ///< as PeerExchangeTerms::given_up
};

/// One exchange of a device with its peers by lines.
struct LineExchange {
    LineExchangeTerms terms;
    LineLink link[most_peer_links];
    int links = 0;
};

/// Only between GPUs: host devices read each other's memory.
struct Exchanges {
    /// Loads the exchange kernels on the current device: the first launch of a kernel may wait for those that run, and
    /// with it for one that waits for it.
    void (*load_exchanges)(const Context& context) = nullptr;
    /// Queues one kernel that tells the peers that what was queued before is done, copies from each peer, or pushes to
    /// it, as soon as that has said so too, and ends when the peers have done the same here: what is queued behind it
    /// may read what they pushed, and overwrite what they copied. The kernels of all devices must be queued by threads
    /// that do not wait for each other meanwhile; until all run, they spin. \throws Error(internal) for parts that are
    /// not aligned alike to 16 bytes
    void (*exchange_with_peers)(const PeerExchange& exchange, const Context& context) = nullptr;
    /// exchange_with_peers() for little data: each device writes what a peer needs into lines of the peer's
    /// memory and takes what it needs out of its own, so that nothing is asked for and no fence waits for what was
    /// written. A peer's lines must have been taken before they are written again: a device uses two sets of them in
    /// turn with each peer, and before an exchange with a peer ends, that has ended the one before.
    void (*exchange_lines)(const LineExchange& exchange, const Context& context) = nullptr;

    static const Exchanges& cuda();
};
inline constexpr Step load_exchanges{&Exchanges::load_exchanges, "load_exchanges"};
inline constexpr Step exchange_with_peers{&Exchanges::exchange_with_peers, "exchange_with_peers"};
inline constexpr Step exchange_lines{&Exchanges::exchange_lines, "exchange_lines"};

}  // namespace rmsp::kernels
