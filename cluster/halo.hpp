#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
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

/// Brings entries by messages, one to each neighbour.
class Messages final : public GhostExchange {
public:
    Messages(std::shared_ptr<Communicator> processes, const Halo& halo, std::size_t entry_bytes)
        : Messages(std::move(processes), halo.receives, halo.sends, entry_bytes)
    {
    }
    Messages(std::shared_ptr<Communicator> processes, std::vector<Neighbour> receives, std::vector<Neighbour> sends,
             std::size_t entry_bytes)
        : processes_(std::move(processes)),
          receives_(std::move(receives)),
          sends_(std::move(sends)),
          entry_bytes_(entry_bytes)
    {
    }
    void begin(const void* send, void* receive, bool backwards) override;
    void end() override;
    std::int64_t bytes_sent() const noexcept { return bytes_sent_; }
    int receives_from() const noexcept { return static_cast<int>(receives_.size()); }
    int sends_to() const noexcept { return static_cast<int>(sends_.size()); }

private:
    const std::shared_ptr<Communicator> processes_;
    const std::vector<Neighbour> receives_;
    const std::vector<Neighbour> sends_;
    const std::size_t entry_bytes_;
    std::vector<std::byte> out_;  ///< of the messages: outlives a call that fails
    std::vector<MPI_Request> requests_;
    std::atomic<std::int64_t> bytes_sent_{0};
};

}  // namespace rmsp::cluster
