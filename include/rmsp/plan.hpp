#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rmsp/export.hpp>
#include <rmsp/kernel_info.hpp>
#include <rmsp/partition.hpp>
#include <rmsp/topology.hpp>

namespace rmsp {

/// A kernel that the automatic choice weighed for one shard.
struct KernelCandidate {
    std::string kernel;
    bool own_format = false;       ///< it makes a copy of the matrix
    double bytes = 0;              ///< of matrix, x and y in one apply, estimated from a sample of the structure
    double predicted_seconds = 0;  ///< of one apply
    double measured_seconds = 0;   ///< least time of an apply in a race; 0: not raced
    double prepare_seconds = 0;    ///< of making its format: measured once distributed, else estimated; 0 without one
};

/// What one device is given to do.
struct ShardPlan {
    int device = 0;           ///< position among the devices in use
    std::string device_name;  ///< "cuda:0 NVIDIA H200", "host:1 (4 cores)"
    Placement placement;      ///< its worker thread and NUMA node
    PartialCsr part;          ///< see Plan::partition
    /// Every column that the shard touches is in [first_column, end_column): the x it needs; every row in [first_row,
    /// end_row).
    std::int64_t first_column = 0;
    std::int64_t end_column = 0;
    std::int64_t first_row = 0;
    std::int64_t end_row = 0;
    /// The device numbers the columns (entries by column: the rows) from `index_base` on, `indices` of them, in 32
    /// bits.
    std::int64_t index_base = 0;
    std::int64_t indices = 0;
    std::string kernel;         ///< "" until one is chosen
    std::string kernel_reason;  ///< "asked for", "predicted", "won the race", ...
    std::vector<KernelCandidate>
        candidates{};               ///< what the choice was among, the chosen one first; empty: there was none
    double break_even_applies = 0;  ///< applies after which the kernel's own format has paid for itself; 0: it has none
    std::uint64_t structure =
        0;  ///< fingerprint of matrix, device and build, by which races are remembered; 0: not taken
    /// Row pointers, columns and values: on the device, or (streamed) copied to it. Once distributed, also what the
    /// kernel keeps.
    std::int64_t matrix_bytes = 0;
    std::int64_t vector_bytes = 0;  ///< x as this device sees it and its y
    /// Least traffic of one apply: of the memory, or (streamed) of the link to the host. In CSR while nothing is
    /// distributed, then in the kernel's own format.
    std::int64_t apply_bytes = 0;
    /// Entries of x that the device receives from others at each apply with x by rows: a bound until the matrix is
    /// distributed.
    std::int64_t halo_entries = 0;
    double limit_gbs = 0;         ///< bandwidth limit of the memory or the link, measured or assumed; 0: unknown
    double exchange_seconds = 0;  ///< predicted, of an x by rows if DistributeOptions::x_layout says so
    /// Of one apply; 0: not measured, and the limit is unknown. The kernel takes what it took in a race, else what its
    /// model says (KernelCandidate::predicted_seconds), one that was not weighed apply_bytes over limit_gbs; of the
    /// exchange counts what is not hidden behind it. A merge comes on top (Plan::merge_seconds).
    double predicted_seconds = 0;
};

/// How long an apply would take on so many of the devices.
struct DevicePrediction {
    int devices = 0;
    double seconds = 0;
};

/// One step of a cluster, by the model of docs/cluster.md: a product, or a solver's iteration, of the slowest node.
struct ClusterStep {
    int nodes = 0;
    double rows = 0;      ///< of the whole matrix
    double ghosts = 0;    ///< entries of x that a node receives for a product, at most
    double messages = 0;  ///< in which they come, one from each node that has some
    // Seconds of its parts, which may go on at the same time.
    double bytes_seconds = 0;     ///< the nodes' memories
    double exchange_seconds = 0;  ///< bytes between nodes
    double latency_seconds = 0;   ///< of messages and sums between nodes
    double launch_seconds = 0;    ///< launches, and what devices of one node wait for each other
    double seconds = 0;           ///< of the step; 0: the nodes' bandwidth is unknown
    std::string limit;            ///< the largest part: "bytes", "exchange", "latency", "launches"
};

/// How equal nodes would do together what a plan does on one of them.
struct ClusterPlan {
    int nodes = 0;  ///< 0: no cluster was asked for
    Network network{};
    std::string step;                 ///< "product", "iteration of cg"
    double products = 0;              ///< in a step
    double sums = 0;                  ///< over all nodes, in a step
    double sums_beside = 0;           ///< of these, what goes on beside a product
    double vector_bytes = 0;          ///< that a step moves besides products, for each row
    double rows = 0;                  ///< of the whole matrix; the plan has a node's
    double cols = 0;                  ///< of the whole matrix; the plan has a node's
    double nnz = 0;                   ///< of the whole matrix; the plan has a node's
    std::string counted;              ///< how ghosts and messages were found
    std::int64_t most_nonzeros = 0;   ///< of the largest matrix that was made for that, and for the plan
    ClusterStep planned;              ///< on `nodes`
    std::vector<ClusterStep> strong;  ///< the same matrix on more and fewer nodes
    std::vector<ClusterStep> weak;    ///< a matrix that has as many rows on each node
};

/// The whole decision, printed by `--dry-run` and in every report. Immutable once a matrix is distributed.
struct Plan {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t nnz = 0;
    Format format = Format::csr;
    CooOrder order = CooOrder::by_row;  ///< of the entries: by_column for csc
    std::string precision;              ///< "double", "float"
    std::string mode;                   ///< "resident", "streamed"
    std::string transport;              ///< "nccl", "peer", "host", "shared" (host devices), "none" (one device)
    std::string transport_reason;
    int devices = 0;  ///< with a part; those behind them have none
    std::string devices_reason;
    std::string exchange;  ///< of an x by rows: "none", "ranges", "entries"
    /// Entries by column: the split of A^T, whose rows are A's columns. Unsorted ones: runs of equal length of all
    /// rows.
    Partition partition;
    /// What adds the devices' partial results where each has some of the same rows (entries by column or unsorted):
    /// "peer", "nccl", "host", "shared"; "none" where each row belongs to one device.
    std::string merge = "none";
    std::int64_t merge_bytes = 0;  ///< most that one device receives for that
    double merge_seconds = 0;      ///< predicted
    std::vector<ShardPlan> shards;
    double nonzero_imbalance = 0;
    /// Largest time of a device's kernel over the mean, minus one: with equal nonzeros, and as the matrix was
    /// distributed in the end. Below 0: not measured (see DistributeOptions::balance).
    double first_time_imbalance = -1;
    double time_imbalance = -1;
    int moves = 0;                              ///< how often the cuts were moved for it
    std::int64_t expected_applies = 0;          ///< what the kernels were chosen for; 0: any number
    std::vector<DevicePrediction> predictions;  ///< on other numbers of devices, where a dry run asked for them
    ClusterPlan cluster{};                      ///< where a dry run asked for one; the rest is then of one node
    /// What joins the devices and their nodes, of a described machine; of GPUs of this one as the self test that is
    /// kept measured it.
    std::vector<MachineLink> links{};

    /// Of one apply: the slowest device and the merge; 0 where a limit is unknown.
    RMSP_API double predicted_seconds() const;
    RMSP_API std::string to_text() const;
};

}  // namespace rmsp
