#pragma once

#include <cstdint>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rmsp/error.hpp>
#include <rmsp/export.hpp>
#include <rmsp/io.hpp>
#include <rmsp/job.hpp>
#include <rmsp/matrix.hpp>
#include <rmsp/metrics.hpp>
#include <rmsp/plan.hpp>
#include <rmsp/report.hpp>
#include <rmsp/runtime_options.hpp>
#include <rmsp/topology.hpp>

namespace rmsp {

/// Where a matrix is between applies.
enum class Mode : std::uint8_t {
    resident,  ///< on the devices
    streamed,  ///< in the caller's host memory: each apply brings it to the devices in pieces, so it may exceed theirs
};

/// Where the entries of a distributed vector are.
enum class Layout : std::uint8_t {
    rows,        ///< each device holds its own slice
    replicated,  ///< each device holds all entries
};

/// The order in which the devices hold the entries of a vector. What is uploaded and downloaded is always in the
/// matrix's.
enum class Order : std::uint8_t {
    matrix,  ///< as its rows and columns are numbered
    /// As the kernel numbers them, if it has an order of its own: products with such vectors spare the copies of
    /// x and y in the other order.
    kernel,
};

/// What distribute() does with coordinates that are sorted neither by row nor by column.
enum class Unsorted : std::uint8_t {
    refuse,  ///< throws
    sort,    ///< sorts a copy by row, once; update_values() is refused then
    split,   ///< splits them as they are: each device may have some of every row, which are then added
};

/// Where the local row pointers of the parts are computed.
enum class RowPointers : std::uint8_t {
    device,  ///< by a kernel on each device, from a slice of the caller's (MSREP, section 4.1)
    /// By the worker's cores, on the way to the device; for comparisons. Host devices compute them themselves anyway.
    host,
};

/// How the pieces of a streamed matrix cross the links to the devices.
enum class StreamEncoding : std::uint8_t {
    none,       ///< as they are in the caller's arrays
    automatic,  ///< columns and values of each piece encoded without loss, where that saves a tenth of an array or more
};

/// What of the rows of streamed coordinates crosses the links, where the entries are sorted.
enum class StreamCoordinates : std::uint8_t {
    /// Row pointers (by column: column pointers), which one pass in distribute() makes: 4 bytes less for each nonzero,
    /// and any kernel of CSR or CSC.
    pointers,
    indices,  ///< the index of each entry, as MSREP's pCOO has it: nothing is made beforehand, pieces are not encoded
};

/// What becomes of the pages of a streamed matrix on a machine of several NUMA nodes, before they are locked. (MSREP,
/// section 4.2)
enum class StreamPlacement : std::uint8_t {
    /// Those that a device reads are moved to its node: the caller's arrays stay at their addresses. Pages that were
    /// locked before stay where they are.
    move,
    copy,  ///< each device's part is copied to its node; the caller's pages stay where they are
    keep,  ///< they are read where they are
};

/// How the entries of an x by rows reach the devices that need them.
enum class Exchange : std::uint8_t {
    automatic,  ///< by entries where that moves less than half as much, if x is to be by rows in most applies
    ranges,     ///< from the first to the last column that a device's part of the matrix touches
    entries,    ///< only those that it touches: their columns are numbered anew on the device, their owners pack them
};

/// What the parts of the devices have equally much of.
enum class Balance : std::uint8_t {
    automatic,  ///< nonzeros; time, where the expected applies repay that the matrix is distributed once more
    nonzeros,   ///< by RuntimeOptions::weights
    /// Time of their kernels, measured once the matrix is distributed: the cuts are moved, and it is distributed again.
    time,
};

/// How the devices keep the values of a matrix of doubles.
enum class StoredValues : std::uint8_t {
    exact,   ///< without loss, in fewer bytes where a kernel's format can
    floats,  ///< rounded to floats, once; vectors, products and sums are of doubles
};

/// A stream of the caller's to order work by: a cudaStream_t (or CUstream) of the GPU whose memory the call is given;
/// null is that GPU's default stream. Alive during the call.
struct StreamRef {
    void* handle = nullptr;
};

/// How a matrix is split, where it stays, and which kernel multiplies it.
struct DistributeOptions {
    PartitionStrategy strategy = PartitionStrategy::nonzeros;
    RowAlignment alignment = RowAlignment::automatic;
    /// Resident CSR split by nonzeros. `automatic` measures on GPUs from 1,000 expected applies on, where determinism
    /// is none: the cuts, and with them the bits, may differ from one process to the next.
    Balance balance = Balance::automatic;
    RowPointers row_pointers = RowPointers::device;
    std::string kernel = "auto";  ///< a name of list_kernels() for the matrix's format, or "auto"
    /// `floats`: each product is that of the matrix whose values were rounded, in double precision. Resident CSR that
    /// is not borrowed. Kernels that keep floats (KernelInfo::keeps_floats) read 4 bytes a value; others are refused if
    /// they are named.
    StoredValues values = StoredValues::exact;
    Unsorted unsorted = Unsorted::refuse;
    /// What adds the partial results of devices that have some of the same rows: "peer", "nccl", "host", or "auto",
    /// which takes the fastest of the connected ones by bytes and latency. Means nothing where each row belongs to one
    /// device.
    std::string merge = "auto";
    /// Make apply_transposed() ready as well, rather than at its first call. Columns then keep their numbers.
    bool transposed = false;
    /// Resident CSR that is not borrowed. Host devices, which share their memory, exchange nothing: `entries` then only
    /// numbers the columns anew.
    Exchange exchange = Exchange::automatic;
    /// How many devices get a part of the matrix, the first ones of the runtime. 0: those on which an apply takes least
    /// by a model if RuntimeOptions::devices is "auto", since a small matrix is slower on more; else all. Streamed:
    /// always all.
    int devices = 0;
    /// Where x is in most applies: what the automatic choices assume.
    Layout x_layout = Layout::rows;
    Determinism determinism = Determinism::none;
    /// With kernel "auto": how often the matrix will be multiplied, so that a format is made only where it repays its
    /// cost; 0: unknown, often. From 100 on, and where determinism allows, the two kernels that are predicted to be
    /// fastest take turns in the first applies, and the faster one stays, unless the second would cost too many of them
    /// to be worth a try.
    std::int64_t expected_applies = 0;
    /// Host devices only: use the caller's arrays in place instead of node-local copies. They must then outlive the
    /// matrix (32-bit columns only; ignored by GPUs, which always copy).
    bool borrow = false;
    /// Streamed: the caller's arrays must outlive the matrix and the jobs that use it, and are not written meanwhile,
    /// except as update_values() says. GPUs take only the pieces on their way; host devices multiply in place (64-bit
    /// columns: in pieces). Kernels that need the entries on the device beforehand are refused: those with a format of
    /// their own.
    Mode mode = Mode::resident;
    /// Streamed: bytes of row pointers, columns and values that are copied as one, at least 1024. A GPU holds six such
    /// pieces. 0: 64 MiB, and less towards the end of a part, so that little is left to do when the last piece has
    /// arrived.
    std::int64_t chunk_bytes = 0;
    /// Streamed to GPUs: page-lock the caller's arrays, unless they are, for as long as the matrix lives. What is not
    /// locked is copied through pinned buffers by the workers' cores, which is slower.
    bool pin = true;
    /// Streamed: whether pieces are encoded. Once, in distribute() and again in update_values(), into page-locked host
    /// memory near each device; the devices decode them. Pays where a matrix is multiplied often and its columns or
    /// values are regular: stencils, patterns, few or small or integer values.
    StreamEncoding encoding = StreamEncoding::none;
    /// Streamed: as what sorted coordinates cross the links. Unsorted ones (Unsorted::split) have their row indices
    /// with them in any case.
    StreamCoordinates coordinates = StreamCoordinates::pointers;
    /// Streamed: on machines of several NUMA nodes, and for devices whose node is known. With `copy` new values count
    /// from update_values() on.
    StreamPlacement placement = StreamPlacement::move;
    /// Streamed: most bytes of each device's memory that the matrix may take, with its copies of x and y; 0: all there
    /// is. Pieces become smaller than chunk_bytes where they have to.
    std::int64_t device_bytes = 0;
    /// Arrays in the memory of a GPU: they are read after what is on this stream. None: what writes them has ended.
    std::optional<StreamRef> after{};
    std::string name{};  ///< of the matrix, for logs (docs/service.md) and messages; any text
    Progress progress{};
};

class Runtime;

namespace detail {
struct RuntimeState;
template <class T>
struct MatrixState;
template <class T>
struct VectorState;
struct VectorAccess;
struct MatrixAccess;
struct RuntimeAccess;
}  // namespace detail

/// A vector whose entries live on the devices of a runtime. A handle, whose copies are the same vector; the memory is
/// freed with the last one, after the jobs that use it. Create one with DistributedMatrix::make_x() or make_y(), so
/// that its slices fit the matrix.
template <class T>
class DistributedVector {
    static_assert(is_value_type<T>, "librmsp multiplies float and double");

public:
    DistributedVector() = default;
    RMSP_API std::int64_t size() const;
    RMSP_API Layout layout() const;
    RMSP_API Order order() const;
    /// First entry of each device's slice, and size() at the end (devices + 1 entries).
    RMSP_API std::span<const std::int64_t> offsets() const;
    /// What a device, by its position in Runtime::devices(), holds: its slice, or all entries of a replicated vector,
    /// in memory of that device (host devices: of the process, in which a replicated vector is there once), for the
    /// caller's own kernels. The caller orders them with librmsp's work: Runtime::synchronize() before they begin, and
    /// they have ended before the next call that uses the vector. Entries are in order(). Valid as long as the vector.
    /// \throws Error(usage) if there is no such device
    RMSP_API std::span<T> local(int device);
    RMSP_API std::span<const T> local(int device) const;
    /// Copies all size() entries in, from host memory of any kind or from that of a GPU of this process, where what
    /// writes them has ended; returns when they are on the devices.
    RMSP_API void upload(const T* entries);
    /// Copies all entries out, to such memory, after every job submitted before; blocks.
    RMSP_API void download(T* entries) const;
    /// Sets every entry. Queued: returns at once, in order with applies and the other operations on vectors.
    RMSP_API void fill(T value);

private:
    template <class>
    friend class DistributedMatrix;
    friend struct detail::VectorAccess;
    explicit DistributedVector(std::shared_ptr<detail::VectorState<T>> state) : state_(std::move(state)) {}
    std::shared_ptr<detail::VectorState<T>> state_;
};

/// A sparse matrix that was split over the devices of a runtime, and stays there or is streamed to them (see Mode). All
/// member functions may be called from several threads at once; jobs run in the order in which they were accepted, and
/// those of one thread in program order.
template <class T>
class DistributedMatrix {
    static_assert(is_value_type<T>, "librmsp multiplies float and double");

public:
    DistributedMatrix() = default;

    RMSP_API std::int64_t rows() const;
    RMSP_API std::int64_t cols() const;
    RMSP_API std::int64_t nnz() const;
    RMSP_API const Plan& plan() const;

    /// y = alpha A x + beta y with x (cols() entries) and y (rows() entries) in host memory, pageable or pinned. Blocks
    /// until y is complete. With beta == 0, y is not read. x and y must not overlap. Either may be in the memory of any
    /// GPU of this process, where what uses it has ended: it then goes through vectors that the matrix keeps on its
    /// devices, from GPU to GPU. \throws Error(usage) for a null array, and what a device threw; the runtime and the
    /// matrix stay usable, y is
    ///         then unspecified
    RMSP_API void apply(T alpha, const T* x, T beta, T* y);
    /// y = alpha A x + beta y with vectors on the devices; x by rows is gathered through the transport first. Blocks
    /// until y is complete.
    /// \throws Error(usage) for vectors of another runtime, size or split, and for x and y that are the same; what a
    ///         device threw
    RMSP_API void apply(T alpha, const DistributedVector<T>& x, T beta, DistributedVector<T>& y);
    /// apply() without waiting: x and y must stay, and be left alone, until the future is ready. get() rethrows what a
    /// device threw. The future may be given up, its destructor does not wait; such errors are then lost.
    /// \throws Error(usage) as apply(), at once
    [[nodiscard]] RMSP_API std::future<void> apply_async(T alpha, const T* x, T beta, T* y);
    /// apply() in the order of a stream of the GPU that has y: it begins after what the caller queued there, and what
    /// the caller queues there afterwards begins once y is complete. x and y are in the memory of GPUs.
    /// Returns when the work is queued on every device; no host thread waits for a device. Errors of devices come by
    /// the future. \throws Error(usage) as apply(), and for arrays in host memory, at once
    [[nodiscard]] RMSP_API std::future<void> apply_async(T alpha, const T* x, T beta, T* y, StreamRef stream);
    /// apply() without waiting, with vectors on the devices, which stay by themselves. The work of successive calls is
    /// in order without the caller waiting in between; Runtime::synchronize() waits for all. Of products that take
    /// microseconds, and follow each other at once, up to eight futures become ready together.
    /// \throws Error(usage) as apply(), at once
    [[nodiscard]] RMSP_API std::future<void> apply_async(T alpha, const DistributedVector<T>& x, T beta,
                                                         DistributedVector<T>& y);
    /// Both on the caller's terms, as if in a JobScope. get() throws Error(cancelled) or Error(deadline) where those
    /// ended the product; y is then unspecified. \throws Error(busy) besides, if the queue is full, at once
    [[nodiscard]] RMSP_API std::future<void> apply_async(T alpha, const T* x, T beta, T* y, const JobOptions& options);
    [[nodiscard]] RMSP_API std::future<void> apply_async(T alpha, const DistributedVector<T>& x, T beta,
                                                         DistributedVector<T>& y, const JobOptions& options);

    /// y = alpha A^T x + beta y with x (rows() entries) and y (cols() entries) in host memory, otherwise as apply().
    /// Uses what is on the devices: parts by rows act as parts by columns of A^T and the other way round. Unless
    /// DistributeOptions::transposed did, the first call makes room and kernels ready, and blocks meanwhile, the
    /// asynchronous ones too; determinism "run" on GPUs costs a copy of the matrix then.
    /// \throws Error(usage) as apply(), for a streamed matrix, if no kernel keeps the determinism asked for, and if
    ///         columns were numbered anew, which DistributeOptions::transposed prevents (see Exchange::entries and
    ///         Plan::exchange)
    RMSP_API void apply_transposed(T alpha, const T* x, T beta, T* y);
    /// y = alpha A^T x + beta y with vectors on the devices: x is one that make_y() makes (or, if the matrix is square,
    /// make_x()), y one that make_x(Layout::rows) makes.
    RMSP_API void apply_transposed(T alpha, const DistributedVector<T>& x, T beta, DistributedVector<T>& y);
    /// apply_transposed() without waiting for y, as apply_async().
    [[nodiscard]] RMSP_API std::future<void> apply_transposed_async(T alpha, const T* x, T beta, T* y);
    [[nodiscard]] RMSP_API std::future<void> apply_transposed_async(T alpha, const T* x, T beta, T* y,
                                                                    StreamRef stream);
    [[nodiscard]] RMSP_API std::future<void> apply_transposed_async(T alpha, const DistributedVector<T>& x, T beta,
                                                                    DistributedVector<T>& y);

    /// New values, same structure: nnz entries in the order of the arrays given to distribute(). Nothing is partitioned
    /// anew. Returns when the devices have them. A matrix that borrows or streams the caller's values takes no other
    /// array: once no job uses it, write the new values there and call this. Values in the memory of a GPU go from GPU
    /// to GPU; what writes them has ended.
    /// \throws Error(usage) for another array then, for coordinates that were sorted on the way (Unsorted::sort), and
    ///         for values in GPU memory of rounded values
    RMSP_API void update_values(const T* values);
    /// update_values() with values in the memory of a GPU, after what is on a stream of it.
    RMSP_API void update_values(const T* values, StreamRef after);

    /// The entries a_ii of a square matrix, in a new vector as make_y() makes it: repeated entries added up, 0 where
    /// there is none. Computed on the devices from what they hold, so after update_values() from the new values; of a
    /// streamed matrix on the host, from the caller's arrays. More than two entries at one place of coordinates that
    /// were split as they came (Unsorted::split) are added in any order by GPUs. Blocks. \throws Error(usage) if the
    /// matrix is not square, Error(out_of_memory) if there is no room for the vector
    [[nodiscard]] RMSP_API DistributedVector<T> diagonal() const;

    /// A vector of cols() entries for x, or by rows also for the y of apply_transposed(), uninitialised. By rows:
    /// sliced as make_y() slices if the matrix is square; else evenly, or, of entries by column, as their columns are
    /// split. Order::kernel, for both: vectors for products with this matrix alone, whose kernel's order they are in,
    /// and for operations with each other; they keep the matrix's memory. Blocks. Vectors in the matrix's order where
    /// the kernel has none of its own, or does not hold the whole of a square matrix on one device. While two kernels
    /// are raced (see DistributeOptions::expected_applies) and one of them has an order, this ends the race: four
    /// products with scratch vectors, of each kernel's order, decide it.
    /// \throws Error(out_of_memory) if there is no room for the vector, or for two more that such a race takes
    ///         meanwhile
    [[nodiscard]] RMSP_API DistributedVector<T> make_x(Layout layout, Order order = Order::matrix) const;
    /// A vector of rows() entries for y, or for the x of apply_transposed(), by rows: each device holds the rows it
    /// owns.
    [[nodiscard]] RMSP_API DistributedVector<T> make_y(Order order = Order::matrix) const;

    /// Plan, set-up times, and what was measured by measure() so far.
    RMSP_API Report report() const;

    /// Where x and y live in measure().
    enum class Vectors : std::uint8_t {
        host,
        replicated,
        rows,
        kernel_order,  ///< by rows, in Order::kernel
    };
    /// What an apply finds in the devices' caches: what the one before left there, or nothing, since they are flushed
    /// before each, outside its time, also while warming up. An apply of several devices then also waits for the
    /// slowest flush.
    enum class Caches : std::uint8_t { warm, cold };
    /// Times `iterations` applies y = alpha A x + beta y after `warmup` ones, and as many more as races of kernels
    /// take, then profiles the phases of a few. The result is also kept for report(). x is the given host vector,
    /// copied to where it is to live first. y_out, if not null, receives the result of one more apply, which starts
    /// from y_in (the timed ones continue from each other's y).
    /// \throws Error(usage) for iterations < 1, or an x by rows with a matrix that is not square
    RMSP_API Measurement measure(Vectors vectors, std::int64_t warmup, std::int64_t iterations, T alpha, const T* x,
                                 T beta, const T* y_in, T* y_out, Caches caches = Caches::warm);

private:
    friend class Runtime;
    friend struct detail::MatrixAccess;
    explicit DistributedMatrix(std::shared_ptr<detail::MatrixState<T>> state) : state_(std::move(state)) {}
    std::shared_ptr<detail::MatrixState<T>> state_;
};

/// Facts about one device in use.
struct DeviceInfo {
    int index = 0;
    DeviceKind kind = DeviceKind::host;
    std::string name;        ///< "NVIDIA H200"; "4 cores of node 0"
    std::string pci_bus_id;  ///< GPUs
    std::int64_t memory_bytes = 0;
    int compute_units = 0;  ///< multiprocessors, or threads
    double limit_gbs = 0;   ///< read bandwidth; 0 until it was measured or given
    int numa_node = -1;     ///< the operating system's number of the node that the device is near; -1: unknown
    Placement placement;
    std::string loss{};  ///< why the device is lost: what has a part on it fails; empty: it is healthy
};

/// Owns every device of the node that it was asked for: one pinned worker thread each. Create one per process; several
/// work too, and share the GPUs. All member functions may be called from any thread. What is not an error but should be
/// known, a thread that could not be bound for example, is a warning of spdlog's default logger.
class Runtime {
public:
    /// Reads the topology, starts and binds the workers, opens the devices and tests the transports with data.
    /// \throws Error(usage) for options that are wrong, Error(io) for a topology_file that is, Error(device) if a
    ///         device is not there or cannot be opened; threads already started are joined first
    RMSP_API explicit Runtime(const RuntimeOptions& options = {});
    /// Finishes the jobs accepted so far, then stops the workers; but those that are at jobs that stood still
    /// (RuntimeOptions::stall_seconds) are left to themselves. Matrices and vectors may outlive the runtime: their
    /// functions then throw Error(usage).
    RMSP_API ~Runtime();
    /// One that was moved from is empty, as handles of matrices and vectors are that were: it can be destroyed or
    /// assigned to, and everything else throws Error(usage).
    RMSP_API Runtime(Runtime&&) noexcept;
    RMSP_API Runtime& operator=(Runtime&&) noexcept;

    RMSP_API const Topology& topology() const;
    RMSP_API std::vector<DeviceInfo> devices() const;
    /// Name of the transport in use and why.
    RMSP_API std::string transport() const;

    /// Splits A and copies each part to its device, if there is room for all of them (JobOptions::when_no_memory). Only
    /// reads A's arrays, and only during the call (but see DistributeOptions::borrow and mode). Arrays may be in the
    /// memory of any GPU of this process, each by itself, if the runtime's devices are GPUs: values, and columns of 32
    /// bits, then go from GPU to GPU; the structure also comes to the host, which plans with it. Indices that count
    /// from 1 are copied to be renumbered.
    /// \throws Error(usage) for a bad matrix or option, for a streamed matrix, rounded values or coordinates to be
    ///         sorted in GPU memory, Error(out_of_memory) with the bytes; the runtime stays usable
    template <class T>
    [[nodiscard]] RMSP_API DistributedMatrix<T> distribute(const CsrView<T>& a, const DistributeOptions& options = {});
    /// A matrix by columns: each device multiplies its columns with its range of x, and the partial results are added
    /// by rows.
    template <class T>
    [[nodiscard]] RMSP_API DistributedMatrix<T> distribute(const CscView<T>& a, const DistributeOptions& options = {});
    /// A matrix of coordinates: sorted by row as CSR, sorted by column as CSC, else as DistributeOptions::unsorted
    /// says.
    template <class T>
    [[nodiscard]] RMSP_API DistributedMatrix<T> distribute(const CooView<T>& a, const DistributeOptions& options = {});
    /// A matrix of blocks, as the CSR matrix of all their values; update_values() takes the values block after block.
    /// What is in GPU memory passes through the host, now and at each update. Not streamed, and never borrowed.
    template <class T>
    [[nodiscard]] RMSP_API DistributedMatrix<T> distribute(const BsrView<T>& a, const DistributeOptions& options = {});

    /// After a device was lost: brings a matrix to the healthy ones, from the caller's arrays, on the terms on which it
    /// was distributed. The first call opens a runtime of these devices in place of the one that lost some: matrices
    /// that are distributed from then on are there, and what devices() says is of them. Those that had no part on a
    /// lost device go on where they are. Vectors are made anew with make_x() and make_y(); a vector that spans a lost
    /// device is lost. Where no device is lost, the matrix is only distributed again.
    /// \throws Error(usage) for a matrix of other dimensions, Error(device) if every device is lost, else as
    ///         distribute(); the matrix is then as it was
    template <class T>
    RMSP_API void redistribute(DistributedMatrix<T>& matrix, const CsrView<T>& a);
    template <class T>
    RMSP_API void redistribute(DistributedMatrix<T>& matrix, const CscView<T>& a);
    template <class T>
    RMSP_API void redistribute(DistributedMatrix<T>& matrix, const CooView<T>& a);
    template <class T>
    RMSP_API void redistribute(DistributedMatrix<T>& matrix, const BsrView<T>& a);
    /// redistribute() without the caller's arrays: a resident matrix from the devices, which have to be healthy where
    /// it has a part; a streamed one from the arrays that it is streamed from, whose copies librmsp keeps where it made
    /// some.
    /// \throws Error(device) that names the rows (of a matrix by columns: columns; of unsorted coordinates: entries)
    ///         that were on lost devices, else as with arrays; the matrix is then as it was
    template <class T>
    RMSP_API void redistribute(DistributedMatrix<T>& matrix);

    /// What distribute() would do; touches no device, but to read arrays in GPU memory. Works on described machines.
    /// \throws Error(usage) as distribute()
    template <class T>
    RMSP_API Plan plan(const CsrView<T>& a, const DistributeOptions& options = {}) const;
    template <class T>
    RMSP_API Plan plan(const CscView<T>& a, const DistributeOptions& options = {}) const;
    template <class T>
    RMSP_API Plan plan(const CooView<T>& a, const DistributeOptions& options = {}) const;
    template <class T>
    RMSP_API Plan plan(const BsrView<T>& a, const DistributeOptions& options = {}) const;

    /// Waits until every job accepted before has finished on every device.
    RMSP_API void synchronize();
    /// What was done so far, and what waits. From any thread, at any time; it waits for no device.
    RMSP_API Metrics metrics() const;
    /// Accepts no jobs any more, and waits for those that were: from now on all else throws Error(usage). Jobs that
    /// still wait for their turn after `seconds` end with Error(cancelled). Returns how many those were.
    RMSP_API std::int64_t drain(double seconds = std::numeric_limits<double>::infinity());

    /// Measures the read bandwidth of each device (once) and returns GB/s for each.
    RMSP_API std::vector<double> measure_limits();

private:
    template <class>
    friend class SparseProduct;
    friend struct detail::RuntimeAccess;
    std::shared_ptr<detail::RuntimeState> state_;
};

/// Compares y with the serial reference alpha A x + beta y_in, row by row, in parallel over rows. The bound of a row of
/// n entries is (n + 4) eps relative to |alpha| |A||x| + |beta y_in|; where the reference is NaN or infinite, so must y
/// be. y_in may be null if beta == 0. `values`: as the matrix was distributed, for A is then the matrix whose values
/// were rounded.
template <class T>
RMSP_API Verification verify_spmv(const CsrView<T>& a, T alpha, const T* x, T beta, const T* y_in, const T* y,
                                  StoredValues values = StoredValues::exact);

}  // namespace rmsp
