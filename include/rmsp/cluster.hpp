#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <rmsp/eigen.hpp>
#include <rmsp/ghosted.hpp>
#include <rmsp/io.hpp>
#include <rmsp/runtime.hpp>
#include <rmsp/solver.hpp>
#include <rmsp/spgemm.hpp>

/// Matrices over the processes of an MPI program, one process a node or NUMA node, each with all its devices through
/// librmsp. A library of its own: link rmsp::cluster. Vectors are each process's DistributedVector of its own entries.
///
/// What is marked collective is called by all processes of the communicator, in the same order, on the thread that
/// initialised MPI (MPI_THREAD_FUNNELED suffices; with MPI_THREAD_SERIALIZED a thread of librmsp may speak MPI until
/// such a call returns, which is faster). An error of one process is thrown by all: at once where they are in such a
/// call, else from their next one; after ClusterOptions::timeout_seconds where a process does not come at all, and
/// sooner where one of the same node has ended. Only after these two, the cluster is of no further use: usable() is
/// false.
namespace rmsp {

namespace detail {
struct ClusterState;
template <class T>
struct ClusterMatrixState;
template <class T>
struct ClusterProductState;
}  // namespace detail

struct ClusterOptions {
    /// How long a process waits for the others in a collective call before it throws Error(device).
    double timeout_seconds = 60;
    /// How entries travel between nodes that have several processes: "direct", a message for each two processes;
    /// "gathered", one for each two nodes, which processes of a node gather and hand out; "auto", as a model expects to
    /// be faster (HaloReport::node_reason). The same on all processes.
    std::string node_messages = "auto";
    /// The number of the node that this process is on, for the messages; -1, on all processes: that of its machine.
    int node = -1;
    /// How entries travel between processes, a name of list_cluster_transports(): "nccl" or "gpu-aware-mpi", each entry
    /// from the GPU that has it to one that multiplies with it, over all GPUs of each process; "mpi", by messages in
    /// host memory; "auto", the first of these that works. The first two are tested with data, and where they do not
    /// work the next one is taken (Cluster::transport()). The same on all processes.
    std::string transport = "auto";
};

/// Names of the ways in which entries travel between processes, in the order in which "auto" tries them.
std::vector<std::string> list_cluster_transports();

/// How entries travel between processes, and why.
struct ClusterTransport {
    std::string name;
    std::string reason;
};

/// What one process exchanges of a matrix.
struct HaloReport {
    std::int64_t ghosts = 0;         ///< entries of x that each product receives: each ghost once
    std::int64_t sent = 0;           ///< entries of x that each product sends, once to each process that needs them
    int receives_from = 0;           ///< processes from which each product receives a message
    int sends_to = 0;                ///< processes to which each product sends a message
    std::int64_t bytes_sent = 0;     ///< counted, in all products so far, A^T's included
    bool gathered = false;           ///< messages to other nodes are gathered (ClusterOptions::node_messages)
    std::string node_reason;         ///< why, or why not
    int messages_between_nodes = 0;  ///< that this process sends to other nodes in each product,
    std::int64_t entries_between_nodes = 0;  ///< and what is in them; with A^T gathered messages may have more
    double find_seconds = 0;                 ///< of the set-up: columns numbered anew, lists exchanged
    double distribute_seconds = 0;           ///< of the set-up: split, copied to the devices
};

/// The rows that one process has of a matrix, and what it knows of all. A handle, whose copies are the same matrix.
template <class T>
class ClusterMatrix {
    static_assert(is_value_type<T>, "librmsp multiplies float and double");

public:
    ClusterMatrix() = default;
    /// Of the whole matrix.
    std::int64_t rows() const;
    std::int64_t cols() const;
    std::int64_t nnz() const;
    /// The first row of each process, and rows() at the end: processes + 1 entries.
    std::span<const std::int64_t> row_offsets() const;
    /// The first entry of x of each process, and cols() at the end: processes + 1 entries.
    std::span<const std::int64_t> column_offsets() const;
    /// This process's rows on its devices, for the functions of librmsp.
    const GhostedMatrix<T>& local() const;
    HaloReport halo() const;

    /// Vectors of this process's entries of x and of y, by rows on its devices.
    DistributedVector<T> make_x() const;
    DistributedVector<T> make_y() const;

    /// y = alpha A x + beta y, on the devices. Collective. Blocks.
    void apply(T alpha, const DistributedVector<T>& x, T beta, DistributedVector<T>& y);
    /// y = alpha A x + beta y with this process's entries in host memory. Collective. Blocks.
    void apply(T alpha, const T* x, T beta, T* y);
    /// y = alpha A^T x + beta y with x as make_y() makes it and y as make_x() does. Collective. Blocks.
    void apply_transposed(T alpha, const DistributedVector<T>& x, T beta, DistributedVector<T>& y);
    void apply_transposed(T alpha, const T* x, T beta, T* y);
    /// New values of this process's rows, in the order in which they were given. Collective. Blocks.
    void update_values(const T* values);

private:
    friend class Cluster;
    template <class>
    friend class ClusterSolver;
    template <class>
    friend class ClusterEigenSolver;
    template <class U>
    friend std::shared_ptr<Preconditioner<U>> make_preconditioner(const ClusterMatrix<U>&, const std::string&,
                                                                  const PreconditionerOptions&);
    std::shared_ptr<detail::ClusterMatrixState<T>> state_;
};

/// Rows that one process is to have of a matrix.
template <class T>
struct ClusterRows {
    CsrMatrix<T> rows;  ///< of all columns
    std::int64_t first_row = 0;
};

/// How Cluster::read() has read a file.
struct ReadReport {
    bool in_parts = false;     ///< each process some bytes of it; else the first process all of it
    std::string reason;        ///< why not in parts
    std::int64_t entries = 0;  ///< that this process has read, mirrored ones included
    std::int64_t sent = 0;     ///< of those, to processes that have their rows
};

/// The processes of a communicator, and this one's runtime. A handle.
class Cluster {
public:
    /// Collective. Takes a copy of the communicator; MPI is initialised before, and finalised after the last handle of
    /// the cluster and of its matrices and solvers is gone. With devices = "auto" the processes of one node share its
    /// GPUs evenly.
    /// \throws Error(usage) without MPI_THREAD_FUNNELED, on another thread than MPI's, for processes with other
    ///         versions of librmsp, and for more processes on a node than it has GPUs; what Runtime's constructor
    ///         throws on any process
    explicit Cluster(MPI_Comm communicator, const RuntimeOptions& runtime = {}, const ClusterOptions& options = {});

    int rank() const;
    int size() const;
    /// False once a process has ended or was waited for in vain. Every collective call throws that then; the runtime
    /// and what is on this process's devices stay as they are. End by MPI_Abort(): MPI_Finalize() may wait for ever.
    bool usable() const;
    /// Of this process.
    Runtime& runtime() const;
    /// How entries travel now, on all processes alike: by MPI once NCCL was given up, as it is where processes fail
    /// while it is at work.
    ClusterTransport transport() const;

    /// Each process gives its rows, of all columns, in the order of the processes: `first_row` is the number of its
    /// first one. Arrays are only read, during the call. A square matrix has its entries of x where its rows are;
    /// others evenly. DistributeOptions as GhostedMatrix takes them. Collective.
    /// \throws Error(usage) for rows that do not follow each other, another number of columns on one process or bad
    ///         rows, Error(out_of_memory)
    template <class T>
    [[nodiscard]] ClusterMatrix<T> distribute(const CsrView<T>& rows, std::int64_t first_row,
                                              const DistributeOptions& options = {});

    /// Sends each process its rows of a matrix that the first process has, read from a file for example; what others
    /// pass is not looked at. Rows in turn, as `balance`, the same on all processes, says what they have equally much
    /// of: nonzeros, which is automatic too, by RuntimeOptions::weights, those of a process's devices added, each 1
    /// where it gives none; or time of a product, as predicted: the bytes that it reads and writes at least, at the
    /// bandwidth of the process's devices, which is measured where it is not known (Runtime::measure_limits()).
    /// Collective. Blocks. \throws Error(usage) for another balance on one of them
    template <class T>
    [[nodiscard]] ClusterRows<T> scatter(const CsrMatrix<T>& whole, Balance balance = Balance::automatic);

    /// Reads a matrix as read_matrix() does, with the same bits, and gives each process rows in turn, cut as scatter()
    /// cuts them, but by the entries of the file. Matrix Market files, plain or compressed, and .npz files that are not
    /// compressed, are read in parts, for which all processes have to see the file: each reads an equal share of its
    /// bytes and sends entries to the processes that have their rows, so that none has the whole matrix; of a
    /// compressed one it decompresses all before its share as well. Other files are read by the first process.
    /// ReadOptions::max_bytes is of each process; its progress is not called by those that read nothing. Collective.
    /// Blocks, as long as reading takes: the time limit is for processes that do not answer. \throws what read_matrix()
    /// does on any process; Error(usage) for other options on one of them
    template <class T>
    [[nodiscard]] ClusterRows<T> read(const std::string& path, const ReadOptions& options = {},
                                      ReadReport* report = nullptr, Balance balance = Balance::automatic);

    /// Inner product and norm over all processes, the same bits on each. Collective.
    template <class T>
    [[nodiscard]] double dot(const DistributedVector<T>& a, const DistributedVector<T>& b) const;
    template <class T>
    [[nodiscard]] double norm2(const DistributedVector<T>& a) const;
    /// Sums of numbers over all processes, added in their order. Collective.
    void sum(std::span<double> numbers) const;

private:
    template <class>
    friend class ClusterSolver;
    template <class>
    friend class ClusterProduct;
    std::shared_ptr<detail::ClusterState> state_;
};

/// C = alpha A B of matrices whose rows the processes have, as <rmsp/spgemm.hpp> computes it: each process the rows of
/// C that are its rows of A. Rows of B that its columns of A touch and others have are fetched, each once; its own are
/// copied. A handle.
template <class T>
class ClusterProduct {
public:
    ClusterProduct() = default;
    /// Each process gives its rows of both matrices, of all columns, in the order of the processes, with the number of
    /// its first one; B has as many rows as A columns. Finds the structure of C. The arrays of A must outlive this
    /// where the product is computed in chunks (SpgemmPlan::chunked()), those of B are read during the call.
    /// Collective. \throws Error(usage) for rows that do not follow each other, dimensions that do not fit and what
    /// SparseProduct
    ///         refuses, 2^31 columns of B or more among it; Error(out_of_memory)
    ClusterProduct(const Cluster& cluster, const CsrView<T>& a, std::int64_t a_first_row, const CsrView<T>& b,
                   std::int64_t b_first_row, const SpgemmOptions& options = {});
    /// Computes C from the values that A and B have now. Collective. Blocks.
    void compute(T alpha = T{1});
    /// New values of this process's rows, in the order in which they were given; null: as before, of B on all processes
    /// or on none. Those of fetched rows are fetched again. Collective. \throws Error(usage)
    void update_values(const T* a_values, const T* b_values);
    /// This process's rows of C, once computed: for Cluster::distribute(). \throws Error(usage) before compute()
    ClusterRows<T> download() const;
    /// This process's product, of its rows of A with own and fetched rows of B.
    const SparseProduct<T>& local() const;
    /// Of B, from other processes.
    std::int64_t fetched_rows() const;
    std::int64_t fetched_nonzeros() const;

private:
    std::shared_ptr<detail::ClusterProductState<T>> state_;
};

/// A preconditioner by name. "amg" and "sa-amg" are one hierarchy over all processes, as <rmsp/ghosted.hpp> makes it;
/// of a near-nullspace each process gives its own rows. Others are each process's own, of its rows and columns:
/// additive Schwarz over processes of whatever is named, so that the number of iterations depends on the number of
/// processes; that of multigrid is make_preconditioner(matrix.local().own(), "amg"). Null for "none". Collective.
/// Blocks. \throws as make_preconditioner() of one matrix on any process, Error(usage) for another name or other
/// options of
///         multigrid on one of them
template <class T>
[[nodiscard]] std::shared_ptr<Preconditioner<T>> make_preconditioner(const ClusterMatrix<T>& matrix,
                                                                     const std::string& name,
                                                                     const PreconditionerOptions& options = {});

/// A method of <rmsp/solver.hpp> over all processes. The preconditioner, if none is given, is what
/// make_preconditioner() makes of the options.
template <class T>
class ClusterSolver {
public:
    /// Collective. \throws as Solver's constructor does on any process, Error(usage) for another method, tolerance or
    ///         limit on one of them
    explicit ClusterSolver(const ClusterMatrix<T>& matrix, const SolverOptions& options = {},
                           std::shared_ptr<Preconditioner<T>> preconditioner = nullptr);
    /// Solves A x = b with this process's entries of b and x. The result is the same on all processes but for times.
    /// Collective.
    SolveResult solve(const T* b, T* x);
    SolveResult solve(const DistributedVector<T>& b, DistributedVector<T>& x);
    /// After update_values(). Collective.
    void renew();
    /// Which method it is, and why: of "auto" what that became, on all processes.
    const MethodChoice& choice() const;

private:
    std::shared_ptr<detail::ClusterState> cluster_;
    std::shared_ptr<Solver<T>> solver_;
};

/// Eigenpairs of <rmsp/eigen.hpp> over all processes; preconditioners are those of ClusterSolver.
template <class T>
class ClusterEigenSolver {
public:
    /// Collective. \throws as EigenSolver's constructor does on any process, Error(usage) for another method, number of
    ///         pairs, tolerance or limit on one of them
    explicit ClusterEigenSolver(const ClusterMatrix<T>& matrix, const EigenOptions& options = {},
                                std::shared_ptr<Preconditioner<T>> preconditioner = nullptr);
    /// The result is the same on all processes but for times; vectors are this process's entries. Collective.
    EigenResult<T> solve();

private:
    std::shared_ptr<detail::ClusterState> cluster_;
    std::shared_ptr<EigenSolver<T>> solver_;
};

}  // namespace rmsp
