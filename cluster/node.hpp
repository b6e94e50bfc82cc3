#pragma once

#include <mpi.h>
#include <sched.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include <rmsp/runtime.hpp>

namespace rmsp::cluster {

/// One of the processes of a communicator that run on this node.
struct NodeProcess {
    int rank = 0;
    pid_t id = 0;  ///< as this process sees it; 0: it may be in another container, so that numbers mean nothing
};

/// The processes of a communicator on this node, this one among them, and what is this one's share of the node.
class Node {
public:
    /// Collective over the node's processes.
    explicit Node(MPI_Comm communicator);

    const std::vector<NodeProcess>& processes() const noexcept { return processes_; }
    /// RuntimeOptions::devices for this process: with "auto" an even share of the GPUs that CUDA_VISIBLE_DEVICES leaves
    /// to all of the node's processes, if there are any; all that it sees, where that differs from process to process.
    /// \throws Error(usage) for more processes than GPUs
    std::string devices(const RuntimeOptions& options) const;

    /// While it lives, this process may use its share alone of the cores that several of the node's processes may all
    /// use, so that host devices which are made meanwhile are not bound to the same cores as theirs. Does nothing where
    /// MPI has bound the processes already, for GPUs, or where nothing is to be bound.
    class OwnCores {
    public:
        OwnCores(const Node& node, const RuntimeOptions& options);
        ~OwnCores();
        OwnCores(const OwnCores&) = delete;
        OwnCores& operator=(const OwnCores&) = delete;

    private:
        bool narrowed_ = false;
        cpu_set_t before_{};
    };

private:
    std::vector<NodeProcess> processes_;
    bool same_gpus_ = true;     ///< all may use the same ones
    int place_ = 0;             ///< of this process among the node's
    int place_on_cores_ = 0;    ///< among those that may use the same cores,
    int sharers_of_cores_ = 1;  ///< and their number
};

}  // namespace rmsp::cluster
