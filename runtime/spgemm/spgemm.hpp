#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <kernels/spgemm/spgemm.hpp>
#include <rmsp/spgemm.hpp>

#include "runtime/engine/memory_budget.hpp"
#include "runtime/matrix/matrix_state.hpp"
#include "runtime/node/node.hpp"

/// Behind SparseProduct.
namespace rmsp::detail {

/// What a row of C costs besides its products, in products.
inline constexpr std::int64_t spgemm_row_work = 8;

/// work[i]: products of the rows of A before row i, plus spgemm_row_work for each of them. rows + 1 entries; cutting them evenly
/// balances the devices.
/// \throws Error(usage) if the products do not fit 64 bits
template <class T>
HostVector<std::int64_t> count_work(const CsrView<T>& a, const CsrView<T>& b);

inline std::int64_t products_of(const HostVector<std::int64_t>& work, std::int64_t first_row, std::int64_t end_row)
{
    return work[static_cast<std::size_t>(end_row)] - work[static_cast<std::size_t>(first_row)] -
           spgemm_row_work * (end_row - first_row);
}

/// Consecutive rows of a matrix that were selected.
struct RowRun {
    std::int64_t first = 0;
    std::int64_t end = 0;
    std::int64_t nnz_before = 0;  ///< entries of the runs before
    bool operator==(const RowRun&) const = default;
};

/// Some rows of a matrix, in order. The device that gets them keeps the matrix's row numbers: the others are empty there.
struct RowSelection {
    std::vector<RowRun> runs;
    std::int64_t rows = 0;
    std::int64_t nnz = 0;
};

/// The rows of B that the rows [first_row, end_row) of A touch; all rows between the first and the last of them where hardly more
/// entries are sent that way, or if the columns of B are not on the host.
template <class T>
RowSelection select_rows(const CsrView<T>& a, std::int64_t first_row, std::int64_t end_row, const CsrView<T>& b,
                         int threads);

/// Where the entries of rows [first_row, end_row) of A are among the selected ones of B, or -1: A and B are one matrix, and all
/// these rows were selected.
template <class T>
std::int64_t position_in_b(const CsrView<T>& a, const CsrView<T>& b, std::int64_t first_row, std::int64_t end_row,
                           const RowSelection& b_rows);

/// All rows [first_row, end_row).
template <class T>
RowSelection consecutive(const CsrView<T>& a, std::int64_t first_row, std::int64_t end_row);

/// Rows of a matrix in the memory of a device.
template <class T>
struct DeviceRows {
    kernels::DeviceArray<std::byte> row_ptr;
    kernels::DeviceArray<std::int32_t> col_idx;
    kernels::DeviceArray<T> values;
    kernels::CsrShard<T> shard;  ///< of the arrays above, or of another matrix's columns and values
    kernels::RowRange filled;    ///< of these rows those that were selected are here
    std::int64_t selected = 0;
    std::int64_t in_b = -1;  ///< of A: its rows are those of B from this one on, in B's arrays

    void describe(const RowSelection& rows, const kernels::CsrShard<T>& of_them)
    {
        shard = of_them;
        selected = rows.rows;
        filled =
            rows.runs.empty() ? kernels::RowRange{} : kernels::RowRange{rows.runs.front().first, rows.runs.back().end};
    }
};

/// Sends local row pointers of the rows [first_row, first_row + rows) of a matrix, 32-bit where the entries allow; rows that are not
/// selected are empty.
template <class T>
IndexView upload_row_pointers(engine::Worker& worker, MemoryBudget& memory, const CsrView<T>& matrix,
                              const RowSelection& selection, std::int64_t first_row, std::int64_t rows,
                              kernels::DeviceArray<std::byte>& storage);
/// The same with the selected rows' entries: a matrix of its own.
template <class T>
void upload_rows(engine::Worker& worker, MemoryBudget& memory, const CsrView<T>& matrix, const RowSelection& selection,
                 std::int64_t first_row, std::int64_t rows, DeviceRows<T>& out);
/// Sends rows of A, unless they came with B, of which b_rows are on the device.
template <class T>
void upload_a(engine::Worker& worker, MemoryBudget& memory, const CsrView<T>& a, const CsrView<T>& b,
              std::int64_t first_row, std::int64_t end_row, const RowSelection& b_rows, const DeviceRows<T>& device_b,
              DeviceRows<T>& out);
/// Sends the selected rows' values alone.
template <class T>
void upload_values(engine::Worker& worker, IndexView row_ptr, const RowSelection& selection, const T* from, T* to);

/// Rows of C that went to the host.
template <class T>
struct HostRows {
    std::int64_t first_row = 0;
    HostVector<std::int64_t> row_ptr;  ///< from 0
    HostVector<std::int32_t> col_idx;
    HostVector<T> values;
};

/// One device's part of a product. Made, used and freed on the device's worker.
template <class T>
struct ProductPart {
    ProductPart(std::unique_ptr<kernels::Memory> memory, std::int64_t limit)
        : pool(std::move(memory)), budget(*pool, limit, "a product")
    {
    }

    std::unique_ptr<kernels::Memory> pool;
    MemoryBudget budget;  ///< of the pool
    std::int64_t first_row = 0;
    std::int64_t end_row = 0;
    RowSelection b_rows;
    DeviceRows<T> a;
    DeviceRows<T> b;
    std::unique_ptr<kernels::SpgemmOperator<T>> product;
    kernels::DeviceArray<std::int32_t> col_idx;  ///< of C
    kernels::DeviceArray<T> values;
    bool columns_known = false;       ///< col_idx is filled
    std::vector<HostRows<T>> chunks;  ///< instead, where the part is computed in runs
    /// Takes runs to the host while the next are computed: another queue and another pinned ring of the same device.
    std::unique_ptr<engine::Worker> copier;
};

/// How devices get entries of B from each other: each has a slice of them, and gathers what else it needs.
struct EntryExchange {
    /// Of each device, where entry 0 of the array is, or would be.
    struct Places {
        std::vector<void*> copies;
        std::vector<void*> held;  ///< its slice, where that is not in its copy: B is another product's C
    };
    std::vector<std::int64_t> slices;      ///< device i has entries [slices[i], slices[i + 1]) of B
    std::vector<transport::Range> needed;  ///< of each device; none where its slice has all of it already
    Places col_idx;
    Places values;
    std::unique_ptr<transport::Channel> channel;  ///< null: host devices, which read each other's memory
    std::atomic<bool> given_up = false;           ///< some device has no room: each takes B from the host

    /// Whether the slices are in other arrays than the copies: B was on the devices before.
    bool of_resident() const noexcept { return !values.held.empty(); }
};

/// Whether B is on the devices, and its entries not on the host.
template <class T>
bool b_is_on_devices(const CsrView<T>& b)
{
    return b.col_idx.data() == nullptr && b.nnz > 0;
}

/// Rows of a factor on one device.
template <class T>
struct FactorPart {
    IndexView row_ptr;  ///< local
    const std::int32_t* col_idx = nullptr;
    const T* values = nullptr;
};

/// The rows of a distributed matrix as products take them: whole, in columns of the matrix's own numbers. A device whose shard is
/// different keeps a copy: of its columns if they were numbered anew, of all its entries if its last row goes on on other devices.
/// Products share it. Its owner keeps the matrix.
template <class T>
class FactorRows {
public:
    /// The matrix's; made if there are none. Blocks.
    static std::shared_ptr<FactorRows> of(MatrixState<T>& matrix);
    ~FactorRows();
    FactorRows(const FactorRows&) = delete;
    FactorRows& operator=(const FactorRows&) = delete;

    /// Queues what gives copied values those that the matrix has now. Every worker of the job calls it.
    void refresh(engine::Worker& worker, engine::Rendezvous& meeting);

    std::vector<std::int64_t> first_rows;  ///< of each device, and the rows at the end
    std::vector<std::int64_t> slices;      ///< entries before those of each device, and all at the end
    std::vector<FactorPart<T>> parts;      ///< of each device

private:
    struct Copy {
        kernels::DeviceArray<std::int64_t> row_ptr;
        kernels::DeviceArray<std::int32_t> col_idx;
        kernels::DeviceArray<std::int32_t> carry_col_idx;  ///< of the row that began on a device before, for that
        kernels::DeviceArray<T> values;
    };

    explicit FactorRows(MatrixState<T>& matrix);
    void make(engine::Worker& worker, engine::Rendezvous& meeting);

    MatrixState<T>& matrix_;
    std::vector<std::unique_ptr<Copy>> copies_;  ///< of each device
    std::shared_ptr<EntryExchange> exchange_;    ///< of what rows lack; null: they are whole
};

/// A matrix that is on the devices as a factor of a product: a product, or a distributed matrix. Each device has consecutive rows.
template <class T>
class ResidentFactor {
public:
    /// Null where the operand is in the caller's arrays.
    /// \throws Error(usage) as SparseProduct's constructor; `name` says which operand it is
    static std::unique_ptr<ResidentFactor> make(const RuntimeState& runtime, const SpgemmOperand<T>& operand,
                                                const char* name);
    ~ResidentFactor();
    ResidentFactor(const ResidentFactor&) = delete;
    ResidentFactor& operator=(const ResidentFactor&) = delete;

    /// Whether its entries are on the devices; else it was computed in runs, which are on the host.
    bool in_place() const noexcept { return !parts.empty(); }
    /// What the host has of it so far.
    CsrView<T> view() const;
    /// Brings row pointers to the host, and columns if they are asked for; of a product that was computed in runs all of it.
    void bring_structure(RuntimeState& runtime, bool columns);
    void bring_all(RuntimeState& runtime);
    /// How often its values were renewed.
    /// \throws Error(usage) if it has none now
    std::int64_t round() const;
    /// Before its values are used, if they were renewed. Every worker of the job calls it.
    void refresh(engine::Worker& worker, engine::Rendezvous& meeting);

    std::vector<std::int64_t> first_rows;  ///< of each device, and the rows at the end
    std::vector<std::int64_t> slices;      ///< entries before those of each device, and all at the end
    std::vector<FactorPart<T>> parts;      ///< of each device; empty: not in place
    std::int64_t taken = 0;                ///< the round whose values were multiplied last

private:
    ResidentFactor(const SpgemmOperand<T>& operand, const char* name);
    void take(MatrixState<T>& matrix);
    void take(const ProductState<T>& product);
    void bring(RuntimeState& runtime, bool columns, bool values);

    SpgemmOperand<T> operand_;
    std::shared_ptr<FactorRows<T>> matrix_rows_;  ///< of a distributed matrix
    const char* name_;
    std::int64_t rows_ = 0;
    std::int64_t cols_ = 0;
    CsrMatrix<T> host_;
};

template <class T>
struct ProductState {
    ~ProductState();

    std::shared_ptr<RuntimeState> runtime;
    CsrView<T> a;  ///< the caller's, or of resident_a; read after construction by chunked parts only
    CsrView<T> b;  ///< likewise
    std::unique_ptr<ResidentFactor<T>> resident_a;  ///< null: A is in the caller's arrays
    std::unique_ptr<ResidentFactor<T>> resident_b;
    std::unique_ptr<EntryExchange> exchange;  ///< null: B came from the host, to each device all that it needs
    std::int64_t round = 0;                   ///< how often C was computed
    std::atomic<int> borrowers = 0;           ///< products of which this C is a factor
    SpgemmOptions options;
    SpgemmPlan plan;
    HostVector<std::int64_t> work;
    std::vector<std::unique_ptr<ProductPart<T>>> parts;
    std::vector<PhaseTimes> phases;
    bool computed = false;
};

/// In how many runs of rows a device computes its part where it does not fit at once.
std::int64_t runs_of(const SpgemmShardPlan& shard);
/// The entries of B that each device needs; empty if there is one that needs several ranges.
std::vector<transport::Range> needed_entries(const std::vector<RowSelection>& selections, IndexView row_ptr);
/// Slices of B's entries, each of what its device needs and as even as that allows; empty if there are none.
std::vector<std::int64_t> entry_slices(const std::vector<transport::Range>& needed);
/// Whether it is faster to send each device its slice of what is needed, and let it gather the rest, than to send it its rows.
bool exchange_pays(const std::vector<RowSelection>& from_host, const std::vector<transport::Range>& needed);
/// How devices would exchange rows of B: a transport, "shared", or "none". \throws Error(usage) for an unknown option
std::string exchange_transport(const RuntimeState& runtime, const SpgemmOptions& options);
/// Opens the exchange's channel, for arrays with so many bytes an entry, where the devices need one; not on a worker.
void connect(RuntimeState& runtime, const std::string& transport, std::size_t entry_bytes, EntryExchange& exchange);
/// Queues what brings the entries of an array from where they are held to the copies. All workers of the job call it.
template <class E>
void gather_held(engine::Worker& worker, engine::Rendezvous& meeting, const EntryExchange& exchange,
                 const EntryExchange::Places& places);
/// Where entry 0 of an array would be whose first entry is number `first`.
template <class E>
void* entry_zero(const E* array, std::int64_t first)
{
    // Not a pointer into the array: counted in bytes.
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(array) -
                                   static_cast<std::uintptr_t>(first) * sizeof(E));
}
/// Connects the devices and makes state.exchange; not on a worker.
template <class T>
void open_exchange(ProductState<T>& state, std::vector<std::int64_t> slices, std::vector<transport::Range> needed);
/// Memory for what the device needs of B. False, on every device, if one has none. All workers of the job call it, and the next two.
template <class T>
bool make_room(ProductState<T>& state, ProductPart<T>& part, engine::Worker& worker, engine::Rendezvous& meeting);
template <class T>
void exchange_columns(ProductState<T>& state, engine::Worker& worker, engine::Rendezvous& meeting);
/// `from`: the host's values of B, if it is no product.
template <class T>
void exchange_values(ProductState<T>& state, engine::Worker& worker, engine::Rendezvous& meeting, const T* from);
/// part.b from what was exchanged, with its row pointers.
template <class T>
void take_exchanged(ProductState<T>& state, ProductPart<T>& part, engine::Worker& worker);

/// Counts, cuts and estimates; touches no device. `first_rows`: of each device, and the rows at the end, where A's rows are on the
/// devices; null: A is cut. `limits` are of each device's memory, 0 where there is none; `selections`, if not
/// null, gets the rows of B for each device.
template <class T>
SpgemmPlan make_spgemm_plan(const RuntimeState& runtime, const CsrView<T>& a, const CsrView<T>& b,
                            const SpgemmOptions& options, const std::vector<std::int64_t>* first_rows,
                            const std::vector<std::int64_t>& limits, HostVector<std::int64_t>& work,
                            std::vector<RowSelection>* selections);

/// Work on one device's part; every worker of the job calls it.
template <class T>
using DeviceBody = std::function<void(engine::Worker&, ProductPart<T>&, engine::Rendezvous&)>;

/// Runs the body on every device, waits, and returns how long each took.
template <class T>
std::vector<double> on_devices(ProductState<T>& state, const DeviceBody<T>& body);

/// The structure of a product of two matrices on the device, by the kernel that the options name.
template <class T>
std::unique_ptr<kernels::SpgemmOperator<T>> prepare_product(engine::Worker& worker, MemoryBudget& memory,
                                                            const SpgemmOptions& options, const DeviceRows<T>& a,
                                                            const DeviceRows<T>& b);

/// \throws Error(internal) if the kernel did not count what the plan did
template <class T>
void check_counts(const kernels::SpgemmOperator<T>& product, std::int64_t products, std::int64_t cols);

inline kernels::Context context_of(engine::Worker& worker, MemoryBudget& memory)
{
    kernels::Context context = worker.context();
    context.memory = &memory;
    return context;
}

/// C of a part whose rows do not fit the device together, in runs of rows that go to part.chunks.
template <class T>
void compute_chunked(ProductState<T>& state, ProductPart<T>& part, engine::Worker& worker, T alpha);

/// Queues the values of C, and its columns if they are not there yet.
template <class T>
void fill_or_renew(ProductPart<T>& part, engine::Worker& worker, T alpha);

/// All of C on the host, as it was computed.
template <class T>
CsrMatrix<T> download_c(ProductState<T>& state);

/// \throws Error(usage) for a product that was never made
template <class T>
ProductState<T>& checked(const std::shared_ptr<ProductState<T>>& state);

/// Cores of a worker for loops on the host.
int threads_of(engine::Worker& worker);

/// options.memory_limit for a device with so many bytes free (0: unknown).
std::int64_t spgemm_limit(const SpgemmOptions& options, std::int64_t free_bytes);

}  // namespace rmsp::detail
