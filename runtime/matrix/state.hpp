#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <kernels/spmv/spmv.hpp>
#include <rmsp/convert.hpp>

#include "runtime/engine/cache.hpp"
#include "runtime/engine/hand_over.hpp"
#include "runtime/engine/job.hpp"
#include "runtime/engine/memory_budget.hpp"
#include "runtime/engine/worker.hpp"
#include "runtime/matrix/race.hpp"
#include "runtime/matrix/streamed.hpp"
#include "runtime/transport/transport.hpp"

/// What the handles of the public API point to. Shared between the handles and the jobs that use it.
namespace rmsp::detail {

class DotSlots;
template <class T>
class ColumnProduct;
template <class T>
struct ColumnShard;
template <class T>
class FactorRows;

/// Values of a matrix that are on the devices already.
template <class T>
class ResidentValues {
public:
    virtual ~ResidentValues() = default;
    /// Gets ready to bring them to the parts of a split, which are of whole rows; not on a worker.
    virtual void split(const Partition& partition) = 0;
    /// Queues those of the worker's part to where its first one goes. Every worker of the job calls it.
    virtual void gather(engine::Worker& worker, engine::Rendezvous& meeting, T* to) = 0;
};

/// A matrix M as it is split and stored, in the caller's arrays: by rows, so that a matrix by columns is its transpose.
/// Coordinates have row indices instead of row pointers, unless they are streamed.
template <class T>
struct Stored : CsrView<T> {
    Format format = Format::csr;        ///< the caller's
    CooOrder order = CooOrder::by_row;  ///< of M: by_row or unsorted
    bool transposed = false;            ///< M is the transpose of the caller's matrix
    bool coordinates = false;           ///< row indices instead of row pointers
    IndexView row_idx;
    ResidentValues<T>* resident = nullptr;  ///< where the values are if `values` is null
};
template <class T>
Stored<T> stored(const CsrView<T>& a)
{
    return {a, Format::csr, CooOrder::by_row, false, false, {}, nullptr};
}
template <class T>
Stored<T> stored(const CscView<T>& a)
{
    return {transpose(a), Format::csc, CooOrder::by_row, true, false, {}, nullptr};
}
/// Finds the order of the entries, which must be valid.
template <class T>
Stored<T> stored(const CooView<T>& a)
{
    const CooOrder order = coo_order(a.nnz, a.row_idx, a.col_idx);
    if (order == CooOrder::by_column) {
        return {{a.cols, a.rows, a.nnz, {}, a.row_idx, a.values},
                Format::coo,
                CooOrder::by_row,
                true,
                true,
                a.col_idx,
                nullptr};
    }
    return {{a.rows, a.cols, a.nnz, {}, a.col_idx, a.values}, Format::coo, order, false, true, a.row_idx, nullptr};
}

struct RuntimeState {
    ~RuntimeState();

    RuntimeOptions options;
    Topology topology;
    std::vector<DeviceInfo> infos;                         ///< limit_gbs under `mutex`
    std::vector<std::unique_ptr<engine::Worker>> workers;  ///< empty: a described machine, plans only
    transport::Connection connection;
    std::unique_ptr<engine::JobQueue> jobs;
    std::vector<std::unique_ptr<transport::Transport>> others;  ///< connected on demand; under `connecting` and `mutex`
    std::mutex connecting;
    LockedArrays locked;  ///< of streamed matrices
    std::vector<std::string> notes;
    engine::Cache cache;
    std::vector<double>
        link_gbs;  ///< copies from the host to each device, all at once; empty until measured; under `mutex`
    std::once_flag dot_slots_made;
    std::shared_ptr<DotSlots> dot_slots;  ///< made for the first dot product
    mutable std::mutex mutex;

    int devices() const { return static_cast<int>(infos.size()); }
    bool shared_memory() const { return infos.empty() || infos.front().kind == DeviceKind::host; }
    /// What bounds an apply on each device in GB/s as far as it is known, else 0: the bandwidth of its memory, or of the link
    /// over which a GPU is streamed to.
    std::vector<double> limits(Mode mode) const;
    /// \throws Error(usage) on a described machine
    void require_live() const;
    /// The transport of that name, connected now if it is not. On the caller's thread, not a worker's.
    /// \throws Error(device) if it does not connect the devices
    transport::Transport& transport(const std::string& name);
    /// A job failed: devices that wait for others in it stop waiting.
    void give_up(std::uint64_t job) noexcept;
    std::future<void> submit(engine::Job::Body body, std::function<void()> finish = {}, bool host_data = false);
    /// Runs f once, on the worker of a device behind everything submitted so far, or here if the workers have stopped. f frees
    /// memory; it must not throw.
    void release(int rank, const std::function<void()>& f) noexcept;
    /// Finishes the accepted jobs and ends the threads.
    void stop() noexcept;
};

/// Reads the topology, then starts and binds the workers and opens their devices, if it is the live one's; connects nothing.
/// \throws as Runtime's constructor
std::unique_ptr<RuntimeState> open_devices(const RuntimeOptions& options);

/// A race between the first two candidates of a shard's plan.
struct RaceRecord {
    std::shared_ptr<detail::RaceOutcome> outcome;
    std::array<std::int64_t, 2> apply_bytes{};  ///< ShardPlan::apply_bytes with each
};

/// Ghosts travel in two messages: the popular ones, with which most entries of a graph are multiplied, and the others.
inline constexpr std::size_t ghost_messages = 2;
inline constexpr std::size_t popular_ghosts = 0;
inline constexpr std::size_t other_ghosts = 1;
struct GhostMessage {
    transport::Halo halo;
    std::vector<void*> packed;  ///< where each device packs what others need
    bool empty = true;
};
/// What a device packs of its slice for one message, and where.
template <class T>
struct PackedEntries {
    kernels::DeviceArray<std::int32_t> list;
    kernels::DeviceArray<T> entries;
};

/// A part of a matrix on its device. The row that the part shares with its predecessor, if any, is a matrix of one row of its
/// own (`carry`), so that every kernel multiplies whole rows only.
template <class T>
struct Shard {
    bool streams = false;                  ///< comes to the device in pieces
    std::unique_ptr<MemoryBudget> budget;  ///< of a streamed part: what the arrays below are taken from
    PartialCsr part;
    std::int64_t carry_nnz = 0;  ///< nonzeros of the shared first row
    kernels::DeviceArray<std::byte> row_ptr;
    kernels::DeviceArray<std::int64_t> carry_row_ptr;
    kernels::DeviceArray<std::int32_t> row_idx;  ///< coordinates: laid out as col_idx
    kernels::DeviceArray<std::int32_t>
        col_idx;  ///< carry first, padded to whole 256-byte lines, then the owned rows; empty if borrowed
    kernels::DeviceArray<T> values;  ///< laid out as col_idx
    kernels::CsrShard<T> owned;      ///< coordinates: without row pointers
    kernels::CsrShard<T> carry;
    const std::int32_t* owned_rows = nullptr;  ///< coordinates: row indices of M, as those of `owned`
    RowStatistics statistics;                  ///< of the owned rows; not of coordinates
    std::unique_ptr<kernels::SpmvOperator<T>> owned_operator;
    std::optional<RaceRecord> race;  ///< of owned_operator, which is then a Race
    /// By how much owned_operator reads and keeps more than the plan says since values were renewed: they may compress otherwise.
    std::atomic<std::int64_t> more_read{0};
    std::atomic<std::int64_t> more_kept{0};
    std::unique_ptr<kernels::SpmvOperator<T>> carry_operator;
    /// Owned rows that need no entry of x of another device and are multiplied while those come, if the operator can multiply
    /// some rows alone; empty: there are too few.
    transport::Range interior;
    std::unique_ptr<engine::Event> begun;      ///< where an overlapped apply leaves the worker's stream,
    std::unique_ptr<engine::Event> exchanged;  ///< and what that waits for before it needs the others' entries, or ends
    std::unique_ptr<StreamedPart<T>> streamed;  ///< instead of all of the above but the sizes in `owned`
    kernels::DeviceArray<T> carry_out;          ///< one entry
    kernels::DeviceArray<T> x;                  ///< all of x, where it has to be gathered first
    kernels::DeviceArray<std::int32_t> ghosts;  ///< columns behind the own slice, where x is exchanged by entries,
    kernels::DeviceArray<T> local_x;            ///< room for slice and ghosts, for an x that has none,
    std::array<PackedEntries<T>, ghost_messages> packed;  ///< what others need of the slice, in each message,
    kernels::DeviceArray<T> y;                            ///< owned rows of y, where y lives on the host,
    std::vector<std::unique_ptr<engine::Event>>
        y_done;                              ///< for each stretch of them that leaves as one: its product has ended,
    std::unique_ptr<engine::Event> y_there;  ///< and all of them are in host memory
};

/// Whether the shard's applies are still shared among two kernels.
template <class T>
bool is_racing(const Shard<T>& shard)
{
    return shard.race && shard.race->outcome->winner.load(std::memory_order_relaxed) < 0;
}

/// Whether the shard's operator can begin with the columns of the device's own slice of x and the popular ghosts.
template <class T>
bool begins_with_own_columns(const Shard<T>& shard)
{
    return shard.owned.early_cols > 0 && shard.owned_operator->splits_columns();
}

/// Stretches in which the rows of a resident part leave for a host y, each while the next is multiplied.
inline constexpr int host_y_stretches = 8;

/// Rounds up to whole 256-byte lines of the smallest entries, so that what follows starts aligned for the widest loads.
constexpr std::int64_t whole_lines(std::int64_t n)
{
    constexpr std::int64_t line = 256 / static_cast<std::int64_t>(sizeof(std::int32_t));
    return (n + line - 1) / line * line;
}

/// Where the nonzeros [first, first + n) of the matrix go on the device.
struct Piece {
    std::int64_t first;
    std::int64_t n;
    std::int64_t position;
};

template <class T>
std::vector<Piece> pieces_of(const Shard<T>& shard)
{
    const std::int64_t carry = shard.carry_nnz;
    return {{shard.part.start_idx, carry, 0},
            {shard.part.start_idx + carry, shard.part.nnz() - carry, whole_lines(carry)}};
}

/// One side of M, its rows or its columns, as vectors see it.
struct Side {
    std::vector<std::int64_t> slices;       ///< of a vector by rows: first entry of each device, the size at the end
    std::vector<transport::Range> touched;  ///< entries that have to do with each device's part
    std::int64_t size() const { return slices.back(); }
};
/// Slices of whole 256-byte lines; equal ones, which a collective moves fastest, unless the last devices run out of entries.
std::vector<std::int64_t> even_slices(std::int64_t size, int devices);
/// First owned row of M of each device, and the rows at the end; of unsorted entries even slices.
std::vector<std::int64_t> row_slices(const Plan& plan);
/// Slices along M's columns: the rows' if the matrix is square, so that y may be the next x, else even ones.
std::vector<std::int64_t> column_slices(const Plan& plan);
Side row_side(const Plan& plan);
Side column_side(const Plan& plan);
/// For each device, the bytes of others' sums that its slice of a vector on that side takes.
std::vector<std::int64_t> received_bytes(const Side& y, std::int64_t entry_bytes);
/// How partial results of y are added, what one device receives at most, and how long that takes by the model.
struct MergePlan {
    std::string name;
    std::int64_t bytes = 0;
    double seconds = 0;
};
/// \throws Error(usage) if the options name no transport
MergePlan plan_merge(const RuntimeState& runtime, const DistributeOptions& options, const Side& y,
                     std::int64_t entry_bytes);
/// Whether M, which plan.partition splits, is the transpose of the plan's matrix.
inline bool transposed(const Plan& plan) { return plan.order == CooOrder::by_column; }
/// Whether A x, or A^T x, is M x computed by rows, each of which belongs to one device; else partial results are added.
inline bool multiplies_by_rows(const Plan& plan, bool of_transpose)
{
    return plan.order != CooOrder::unsorted && of_transpose == transposed(plan);
}

template <class T>
struct MatrixState {
    ~MatrixState();

    std::shared_ptr<RuntimeState> runtime;
    Plan plan;
    DistributeOptions options;
    Mode mode = Mode::resident;
    bool coordinates = false;               ///< see Stored
    bool sorted_copy = false;               ///< the values are not in the caller's order
    CooMatrix<T> kept_copy;                 ///< what a streamed matrix has beside the caller's arrays: sorted entries,
    HostVector<std::int64_t> kept_row_ptr;  ///< and row pointers of coordinates
    std::int64_t raw_bytes =
        0;  ///< streamed and encoded: what an apply would copy to the devices without; 0: not encoded
    std::vector<std::string> notes;
    /// Of a streamed matrix. Freed with the matrix and not behind it on a worker: the caller's arrays may go right then.
    std::unique_ptr<StreamSource<T>> source;
    std::vector<std::unique_ptr<Shard<T>>> shards;
    std::vector<std::int64_t> x_even;        ///< even slices of x: how a host x is spread before it is gathered
    std::vector<std::int64_t> x_slices;      ///< slices of an x by rows
    std::vector<transport::Range> x_needed;  ///< columns that each device's shard touches
    bool exchanges = false;                  ///< an x by rows: some device needs entries of another
    bool upload_needed = false;  ///< a host x goes to each device as far as it is needed there; nothing is gathered
    std::vector<std::int64_t> row_slices;  ///< first owned row of each device, rows at the end
    std::vector<void*> x_buffers;          ///< Shard::x of each device
    bool by_entries = false;  ///< the columns of the shards are numbered anew: the own slice of x, then the ghosts
    /// Products with the columns of the own slice and the popular ghosts run while the others come, where operators can be
    /// split so.
    bool hides_entries = false;
    std::array<GhostMessage, ghost_messages> messages;
    bool popular_first() const { return !messages[popular_ghosts].empty; }
    std::vector<std::int64_t> ghosts;             ///< of each device; 0 where x is not exchanged by entries
    std::vector<std::int64_t> popular;            ///< those of them that come first; 0 where none are hidden
    std::vector<void*> local_x;                   ///< where entry 0 would be in Shard::local_x of each device
    std::shared_ptr<transport::Channel> channel;  ///< null: nothing is gathered
    std::shared_ptr<engine::HandOver> carry_order;
    /// What each device adds to its predecessor's last row: one entry a device for a y on the devices, and as many for a host y.
    std::shared_ptr<engine::PinnedBuffer> carries;
    std::vector<int> carry_count;  ///< for each device: how many devices after it add to its last row
    bool any_carry = false;
    Side rows;     ///< of M
    Side columns;  ///< of M
    /// y = M x by rows: ready, or made ready at the first use, under `preparing`. By columns: M^T x, and M x if unsorted.
    bool rows_ready = false;
    std::array<std::shared_ptr<ColumnProduct<T>>, 2> column_products;
    std::shared_ptr<ColumnProduct<T>>& column_product(bool of_transpose)
    {
        return column_products[of_transpose ? 1 : 0];
    }
    std::weak_ptr<FactorRows<T>>
        factor_rows;  ///< as products of matrices take the matrix, while there are any; under `preparing`
    std::mutex preparing;
    std::atomic<std::int64_t> round{0};  ///< how often the values were renewed
    std::vector<PhaseTimes> setup;       ///< under runtime->mutex
    std::vector<Measurement> measurements;

    explicit MatrixState(int devices)
        : shards(static_cast<std::size_t>(devices)),
          x_buffers(static_cast<std::size_t>(devices)),
          ghosts(static_cast<std::size_t>(devices)),
          popular(static_cast<std::size_t>(devices)),
          local_x(static_cast<std::size_t>(devices)),
          carry_order(std::make_shared<engine::HandOver>(devices)),
          carries(std::make_shared<engine::PinnedBuffer>()),
          carry_count(static_cast<std::size_t>(devices))
    {
    }
};

/// The side of M that holds the x of A x or A^T x; the other one holds y.
template <class T>
const Side& x_side(const MatrixState<T>& matrix, bool of_transpose)
{
    return of_transpose == transposed(matrix.plan) ? matrix.columns : matrix.rows;
}

/// An order that is not the matrix's, of vectors on one device.
struct VectorOrder {
    kernels::RowOrder rows;
    std::shared_ptr<const void> matrix;  ///< whose kernel's it is
};

template <class T>
struct VectorState {
    ~VectorState();

    std::shared_ptr<RuntimeState> runtime;
    Layout layout = Layout::rows;
    std::int64_t size = 0;
    std::vector<std::int64_t> offsets;
    std::vector<kernels::DeviceArray<T>> storage;  ///< of each device; host devices share the first
    std::vector<T*> slices;                        ///< each device's first entry (replicated: entry 0)
    /// By rows on GPUs: entries that each device has room for, its slice and what a matrix needs of the others', and
    /// where entry 0 would be, so that x is gathered in place.
    std::vector<transport::Range> held;
    std::vector<void*> entry_zero;
    std::vector<std::int64_t>
        ghost_room;                    ///< entries that each device has room for behind its slice and all that is held
    std::optional<VectorOrder> order;  ///< none: the matrix's

    /// Whether every device has room for the entries that it needs.
    bool holds(const std::vector<transport::Range>& needed) const
    {
        return std::equal(needed.begin(), needed.end(), held.begin(), [](const auto& wanted, const auto& room) {
            return wanted.empty() || (wanted.first >= room.first && wanted.end <= room.end);
        });
    }
};

/// What a handle points to.
/// \throws Error(usage) for one that is empty: made by the default constructor, or moved from
const std::shared_ptr<RuntimeState>& checked(const std::shared_ptr<RuntimeState>& state);
template <class T>
const std::shared_ptr<MatrixState<T>>& checked(const std::shared_ptr<MatrixState<T>>& state);
template <class T>
const std::shared_ptr<VectorState<T>>& checked(const std::shared_ptr<VectorState<T>>& state);

/// What a runtime's handle points to, checked().
struct RuntimeAccess {
    static const std::shared_ptr<RuntimeState>& state(const Runtime& runtime) { return checked(runtime.state_); }
};

/// What a matrix's handle points to.
struct MatrixAccess {
    template <class T>
    static const std::shared_ptr<MatrixState<T>>& state(const DistributedMatrix<T>& matrix)
    {
        return matrix.state_;
    }
    template <class T>
    static DistributedMatrix<T> handle(std::shared_ptr<MatrixState<T>> state)
    {
        return DistributedMatrix<T>(std::move(state));
    }
};

/// What a vector's handle points to.
struct VectorAccess {
    template <class T>
    static const std::shared_ptr<VectorState<T>>& state(const DistributedVector<T>& vector)
    {
        return vector.state_;
    }
};

/// Splits, chooses kernels and counts bytes; touches no device. `weights` of the devices that get a part take the place of
/// RuntimeOptions::weights, unless empty. *split_seconds: what the split alone took, without the scans of rows and columns.
template <class T>
Plan make_plan(const RuntimeState& runtime, const Stored<T>& a, const DistributeOptions& options,
               const std::vector<double>& weights = {}, double* split_seconds = nullptr);

/// Splits A, by `weights` as make_plan() does, copies each part to its device and makes its kernel ready.
template <class T>
std::shared_ptr<MatrixState<T>> distribute_parts(const std::shared_ptr<RuntimeState>& runtime, const Stored<T>& a,
                                                 const DistributeOptions& options,
                                                 const std::vector<double>& weights = {});
/// Whether the cuts of such a matrix may be moved to where its parts take equal time.
inline bool can_move_cuts(Format format, const DistributeOptions& options)
{
    return options.mode == Mode::resident && format == Format::csr && options.strategy == PartitionStrategy::nonzeros;
}
/// The same, and moves the cuts as DistributeOptions::balance says.
template <class T>
std::shared_ptr<MatrixState<T>> distribute(const std::shared_ptr<RuntimeState>& runtime, const Stored<T>& a,
                                           const DistributeOptions& options);
/// What a streamed part takes its memory from.
std::unique_ptr<MemoryBudget> make_budget(engine::Device& device, const DistributeOptions& options);
/// Makes room and kernels ready for products with A, or with A^T; once for each, blocks.
/// \throws Error(usage) for A^T of a streamed matrix, or if no kernel keeps the determinism asked for
template <class T>
void prepare_apply(MatrixState<T>& matrix, bool of_transpose);
/// New values, same structure; from the devices if `resident` is not null.
template <class T>
void update_values(const std::shared_ptr<MatrixState<T>>& matrix, const T* values,
                   ResidentValues<T>* resident = nullptr);

/// Memory for a vector of `size` entries; offsets say which entries each device holds (replicated: which it brings to the host),
/// needed which ones it will be sent, if the vector is an x by rows, ghosts how many others behind those.
template <class T>
std::shared_ptr<VectorState<T>> make_vector(const std::shared_ptr<RuntimeState>& runtime, Layout layout,
                                            std::int64_t size, const std::vector<std::int64_t>& offsets,
                                            const std::vector<transport::Range>& needed = {},
                                            const std::vector<std::int64_t>& ghosts = {});

/// A vector of one side of a matrix, with room for what products with it need.
template <class T>
std::shared_ptr<VectorState<T>> make_vector(const MatrixState<T>& matrix, const Side& side, Layout layout);

/// The same in the order of the matrix's kernel, if it has one of its own and vectors can be in it; blocks.
template <class T>
std::shared_ptr<VectorState<T>> make_vector(const std::shared_ptr<MatrixState<T>>& matrix, const Side& side,
                                            Layout layout, Order order);

/// Copies all entries from, or to, host memory of any kind; blocks.
template <class T>
void upload_vector(const std::shared_ptr<VectorState<T>>& vector, const T* host);
template <class T>
void download_vector(const std::shared_ptr<VectorState<T>>& vector, T* host);

/// x of an apply: on the devices, or in host memory if there is no vector.
template <class T>
struct Source {
    const T* host = nullptr;
    std::shared_ptr<VectorState<T>> vector;
};

/// y of an apply, likewise.
template <class T>
struct Target {
    T* host = nullptr;
    std::shared_ptr<VectorState<T>> vector;
};

/// Times of the phases of profiled applies, recorded as events on each device's stream.
class PhaseProbe {
public:
    PhaseProbe(RuntimeState& runtime, int applies, int marks_each);
    /// Frees the events on their workers.
    ~PhaseProbe();
    PhaseProbe(const PhaseProbe&) = delete;
    PhaseProbe& operator=(const PhaseProbe&) = delete;

    /// The name of a mark at which a phase only begins.
    static constexpr const char* no_phase = "-";
    /// Ends a phase on the worker's stream that began at the mark before; the first mark of an apply begins it and is called
    /// "". Returns the mark.
    std::size_t mark(engine::Worker& worker, const char* phase);
    /// Ends a phase on a stream of the worker that began at the mark `since`. Phases of one name in an apply are added up.
    std::size_t mark(engine::Worker& worker, const char* phase, engine::Stream& stream, std::size_t since);
    /// The same for what the host timed.
    void add(engine::Worker& worker, const char* phase, double seconds);
    /// The latest mark.
    std::size_t last(const engine::Worker& worker) const { return used_[static_cast<std::size_t>(worker.rank())] - 1; }
    /// Median seconds of each phase on each device. Only when all applies are done.
    std::vector<PhaseTimes> medians() const;

private:
    struct Mark {
        const char* phase = "";
        std::size_t since = 0;  ///< the mark where the phase began
        double seconds = -1;    ///< that the host timed instead; -1: none
        std::unique_ptr<engine::Event> event;
    };
    Mark& next(engine::Worker& worker);

    RuntimeState& runtime_;
    std::vector<std::vector<Mark>> marks_;  // of each device; grow where an apply has more than expected
    std::vector<std::size_t> used_;
};

/// Copies entries of a host vector to the worker's device, where a part may be streamed (or null) over the same link.
template <class T>
void upload_vector(engine::Worker& worker, StreamedPart<T>* part, T* to, const T* from, std::size_t bytes)
{
    if (part != nullptr) {
        part->upload(worker, to, from, bytes);
    } else {
        worker.device().upload(worker.stream(), to, from, bytes);
    }
}

/// Queues y = alpha A x + beta y, or with A^T, on one worker; the body of every apply.
template <class T>
void apply_on(MatrixState<T>& matrix, engine::Worker& worker, engine::Rendezvous& meeting, T alpha, const Source<T>& x,
              T beta, const Target<T>& y, PhaseProbe* probe, bool of_transpose = false);

/// Adds the shared rows' carries to a host y, in device order; after all devices are done.
template <class T>
void finish_host_y(const MatrixState<T>& matrix, T* y, bool of_transpose = false);

/// DistributedMatrix::measure().
template <class T>
Measurement measure_matrix(const std::shared_ptr<MatrixState<T>>& matrix,
                           typename DistributedMatrix<T>::Vectors vectors, std::int64_t warmup, std::int64_t iterations,
                           T alpha, const T* x, T beta, const T* y_in, T* y_out, bool cold);

/// Room for what kernels::read_all() writes.
inline constexpr std::int64_t read_sink_entries = 4096;

/// Measures the read bandwidths that RuntimeState::limits() does not know yet.
std::vector<double> measure_limits(RuntimeState& runtime);
/// Rates of the links to the host in GB/s, measured anew, since they are not the same all the time.
template <class T>
std::vector<double> measure_links(MatrixState<T>& matrix);

}  // namespace rmsp::detail
