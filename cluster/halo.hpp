#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <rmsp/cluster.hpp>

#include "cluster/communicator.hpp"

namespace rmsp::cluster {

/// Entries that a process exchanges with another: [first, first + count) of its buffer.
using Neighbour = GhostNeighbour;

/// Columns as one process numbers them: its own, then its ghosts in ascending order, and so by their owners.
struct Halo {
    std::vector<std::int64_t> ghosts;  ///< columns of the whole matrix
    std::vector<Neighbour> receives;   ///< parts of `ghosts`
    std::vector<std::int64_t> sent;    ///< own columns, from 0, for each of `sends` in ascending order
    std::vector<Neighbour> sends;
};

/// Finds what a process with these rows needs, and asks the others for what they need: each entry once. Collective.
/// \param columns  first column of each process, and their number at the end
/// \param out      the rows' columns, numbered so
/// \throws Error(usage) for 2^31 ghosts or more
template <class I>
Halo find_halo(Communicator& processes, const std::vector<std::int64_t>& columns, const I* col_idx, std::int64_t nnz,
               IndexArray& out);

/// An exchange that counts.
class HaloExchange : public GhostExchange {
public:
    /// What each exchange takes, of this process.
    struct Traffic {
        int receives_from = 0;
        int sends_to = 0;
        bool gathered = false;
        int messages_between_nodes = 0;
        std::int64_t entries_between_nodes = 0;
        std::string reason;
    };

    const Traffic& traffic() const noexcept { return traffic_; }
    std::int64_t bytes_sent() const noexcept { return bytes_sent_; }
    void set_reason(std::string reason) { traffic_.reason = std::move(reason); }

protected:
    HaloExchange(std::shared_ptr<Communicator> processes, int receives_from, int sends_to)
        : processes_(std::move(processes))
    {
        traffic_.receives_from = receives_from;
        traffic_.sends_to = sends_to;
    }

    const std::shared_ptr<Communicator> processes_;
    Traffic traffic_;
    std::atomic<std::int64_t> bytes_sent_{0};
};

/// \throws Error(usage) for more bytes than MPI counts
int message_bytes(std::int64_t bytes);

/// Brings entries by messages, one to each neighbour.
class Messages final : public HaloExchange {
public:
    Messages(std::shared_ptr<Communicator> processes, const Halo& halo, std::size_t entry_bytes)
        : Messages(std::move(processes), halo.receives, halo.sends, entry_bytes)
    {
    }
    Messages(std::shared_ptr<Communicator> processes, std::vector<Neighbour> receives, std::vector<Neighbour> sends,
             std::size_t entry_bytes);
    void begin(const void* send, void* receive, bool backwards) override;
    void end() override;

private:
    const std::vector<Neighbour> receives_;
    const std::vector<Neighbour> sends_;
    const std::size_t entry_bytes_;
    std::vector<std::byte> out_;  ///< of the messages: outlives a call that fails
    std::vector<MPI_Request> requests_;
};

}  // namespace rmsp::cluster
