#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cluster/halo.hpp"

namespace rmsp::cluster {

/// Brings entries with one message for each pair of nodes that have something to tell each other. Processes of a node
/// give what goes to another node to one of them, which sends it on; the one there that it comes to hands it out.
/// Inside a node there are messages as always. Entries that several processes of a node need travel between the nodes
/// once; on the way back, for A^T, each process's own. (A. Bienz, W. D. Gropp, L. N. Olson: Node aware sparse
/// matrix-vector multiplication, J. Parallel Distrib. Comput. 130, 2019)
class NodeMessages final : public HaloExchange {
public:
    /// Collective. \param sent  own columns, as Halo has them; empty: all entries differ
    NodeMessages(std::shared_ptr<Communicator> processes, std::vector<Neighbour> receives, std::vector<Neighbour> sends,
                 std::span<const std::int64_t> sent, std::size_t entry_bytes);
    void begin(const void* send, void* receive, bool backwards) override;
    void end() override;

private:
    using Places = std::vector<std::int64_t>;

    /// Entries of an array for, or from, another process.
    struct Some {
        int process = 0;
        Places places;
    };
    /// What comes from processes of this node is one message to another node.
    struct Gathered {
        int to = 0;
        std::vector<std::pair<int, std::int64_t>> from;  ///< processes, and how many entries
        std::int64_t entries = 0;
    };
    /// A message from another node, and what of it is for which process of this one.
    struct HandedOut {
        int from = 0;
        std::int64_t entries = 0;
        std::vector<Some> to;
    };
    /// All that goes one way; lists in the order of the other nodes.
    struct Way {
        std::vector<Some> out;  ///< of the array that is sent
        std::vector<Gathered> gathered;
        std::vector<HandedOut> handed_out;
        std::vector<Some> in;          ///< of the array that is received
        std::vector<Neighbour> sends;  ///< inside the node
        std::vector<Neighbour> receives;
    };

    void find_routes(std::span<const std::int64_t> sent, const std::vector<Neighbour>& receives,
                     const std::vector<Neighbour>& sends);
    std::byte* buffer(std::int64_t entries);
    void copy_entry(std::byte* to, std::int64_t at, const std::byte* from, std::int64_t of) const;
    void send(const void* data, std::int64_t entries, int to, int tag);
    void receive(void* data, std::int64_t entries, int from, int tag, std::vector<MPI_Request>& requests);
    void give_up() noexcept;

    const std::size_t entry_bytes_;
    Way forwards_;
    Way backwards_;

    // Of an exchange that has begun.
    const Way* way_ = nullptr;
    std::byte* to_ = nullptr;
    std::vector<std::vector<std::byte>> buffers_;  ///< outlive a call that fails
    std::vector<std::byte*> handed_out_;           ///< what comes from other nodes
    std::vector<std::byte*> in_;
    std::vector<MPI_Request> requests_;  ///< of all that is left to wait for at the end
    std::vector<MPI_Request> from_nodes_;
    int last_tag_ = 0;
};

/// How entries are exchanged: as ClusterOptions::node_messages asks, or as the model expects to be faster. Collective;
/// arguments as those of NodeMessages.
std::shared_ptr<HaloExchange> make_exchange(std::shared_ptr<Communicator> processes, std::vector<Neighbour> receives,
                                            std::vector<Neighbour> sends, std::span<const std::int64_t> sent,
                                            std::size_t entry_bytes);

/// What one process sends to another node.
struct ToNode {
    int node = 0;
    std::int64_t messages = 0;
    std::int64_t bytes = 0;
    std::int64_t bytes_once = 0;  ///< without what goes to several of its processes
};

/// Seconds of an exchange between nodes by the model: `direct` with a message for each pair of processes, `gathered`
/// for each pair of nodes. Pure. \param node_of  of each process \param to_nodes  what each process sends
struct ExchangeSeconds {
    double direct = 0;
    double gathered = 0;
};
ExchangeSeconds exchange_seconds(const std::vector<int>& node_of, const std::vector<std::vector<ToNode>>& to_nodes);

}  // namespace rmsp::cluster
