#include <algorithm>
#include <chrono>
#include <limits>
#include <mutex>

#include <fmt/format.h>

#include <kernels/support/ghosts.hpp>
#include <kernels/support/support.hpp>

#include "runtime/choose.hpp"
#include "runtime/state.hpp"

namespace rmsp {
namespace detail {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Rounds up to whole 256-byte lines of the smallest entries, so that what follows starts aligned for the widest loads.
std::int64_t padded(std::int64_t n)
{
    constexpr std::int64_t line = 256 / static_cast<std::int64_t>(sizeof(std::int32_t));
    return (n + line - 1) / line * line;
}

/// Adds up what the devices upload and reports it as one share.
class UploadProgress {
public:
    UploadProgress(Progress report, double total) : report_(std::move(report)), total_(total) {}
    void add(double bytes)
    {
        if (report_) {
            std::lock_guard lock(mutex_);
            done_ += bytes;
            report_("upload", total_ > 0 ? std::min(1.0, done_ / total_) : 1.0);
        }
    }

private:
    Progress report_;
    double total_;
    double done_ = 0;
    std::mutex mutex_;
};

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
    return {{shard.part.start_idx, carry, 0}, {shard.part.start_idx + carry, shard.part.nnz() - carry, padded(carry)}};
}

template <class T>
void upload_values(Shard<T>& shard, runtime::Worker& worker, const T* values)
{
    for (const Piece& piece : pieces_of(shard)) {
        worker.device().upload(worker.stream(), shard.values.data() + piece.position, values + piece.first,
                               static_cast<std::size_t>(piece.n) * sizeof(T));
    }
}

template <class T>
void upload_columns(Shard<T>& shard, runtime::Worker& worker, IndexView columns)
{
    for (const Piece& piece : pieces_of(shard)) {
        std::int32_t* const out = shard.col_idx.data() + piece.position;
        const auto bytes = static_cast<std::size_t>(piece.n) * sizeof(std::int32_t);
        columns.visit([&](const auto* col) {
            const auto* const from = col + piece.first;
            if constexpr (sizeof(*from) == sizeof(std::int32_t)) {
                worker.device().upload(worker.stream(), out, from, bytes);
            } else {
                // Narrowed on the way, so that the link carries half of it.
                worker.device().upload(worker.stream(), out, bytes, runtime::narrowed(from));
            }
        });
    }
}

/// Builds the owned rows' local pointers: on the device from the caller's, whose slice is uploaded as it is (MSREP, section
/// 4.1), or on the way there.
template <class T>
IndexView build_row_pointers(Shard<T>& shard, runtime::Worker& worker, IndexView row_ptr, RowPointers where)
{
    const std::int64_t rows = shard.part.owned_rows();
    const std::int64_t start = shard.part.start_idx + shard.carry_nnz;
    const std::int64_t nnz = shard.part.nnz() - shard.carry_nnz;
    const auto context = worker.context();
    const std::size_t entry = nnz > std::numeric_limits<std::int32_t>::max() ? 8 : 4;
    shard.row_ptr = kernels::DeviceArray<std::byte>(worker.device(), static_cast<std::size_t>(rows + 1) * entry);

    const auto localize = [&](IndexView global) {
        if (entry == 4) {
            auto* const out = reinterpret_cast<std::int32_t*>(shard.row_ptr.data());
            kernels::localize_row_ptr(global, rows, start, nnz, out, context);
            return IndexView(out);
        }
        auto* const out = reinterpret_cast<std::int64_t*>(shard.row_ptr.data());
        kernels::localize_row_ptr(global, rows, start, nnz, out, context);
        return IndexView(out);
    };
    return row_ptr.visit([&](const auto* p) {
        const auto* const slice = p + shard.part.first_owned_row();
        if (worker.device().shares_host_memory()) {
            return localize(IndexView(slice));
        }
        if (where == RowPointers::host) {
            const auto bytes = static_cast<std::size_t>(rows + 1) * entry;
            const auto upload = [&](const auto* type) {
                worker.device().upload(worker.stream(), shard.row_ptr.data(), bytes,
                                       runtime::localized(slice, start, nnz, type));
                return IndexView(reinterpret_cast<decltype(type)>(shard.row_ptr.data()));
            };
            return entry == 4 ? upload(static_cast<const std::int32_t*>(nullptr))
                              : upload(static_cast<const std::int64_t*>(nullptr));
        }
        using Pointer = std::remove_cvref_t<decltype(*p)>;
        kernels::DeviceArray<Pointer> staged(worker.device(), static_cast<std::size_t>(rows + 1));
        worker.device().upload(worker.stream(), staged.data(), slice,
                               static_cast<std::size_t>(rows + 1) * sizeof(Pointer));
        const IndexView local = localize(IndexView(staged.data()));
        worker.stream().synchronize();  // before `staged` goes
        return local;
    });
}

/// Finds the rows that are multiplied while x is exchanged, if that pays.
template <class T>
void find_interior(const MatrixState<T>& matrix, Shard<T>& shard, runtime::Worker& worker, const CsrView<T>& a)
{
    // A product on two streams costs two events more, and a second launch.
    constexpr std::int64_t fewest_nonzeros = 2'000'000;
    const auto rank = static_cast<std::size_t>(worker.rank());
    if (!matrix.channel || !matrix.exchanges || shard.owned.nnz < fewest_nonzeros) {
        return;
    }
    runtime::Device& device = worker.device();
    const kernels::DeviceArray<std::int64_t> run(device, 2);
    const std::int64_t slice = matrix.by_entries ? 0 : matrix.x_slices[rank];
    kernels::interior_rows(shard.owned.row_ptr, shard.owned.rows, shard.owned.col_idx, slice,
                           slice + matrix.x_slices[rank + 1] - matrix.x_slices[rank], run.data(), worker.context());
    std::int64_t found[2] = {0, 0};
    device.download(worker.stream(), found, run.data(), sizeof(found));
    worker.stream().synchronize();
    const std::int64_t row = shard.part.first_owned_row();
    if (found[0] < found[1] && a.row_ptr[row + found[1]] - a.row_ptr[row + found[0]] >= fewest_nonzeros) {
        shard.interior = {found[0], found[1]};
        shard.begun = device.make_event(false);
        shard.exchanged = device.make_event(false);
    }
}

/// What every shard has besides its part of the matrix: room for x and y where they are not on the device, and events.
template <class T>
void open_shard(MatrixState<T>& matrix, Shard<T>& shard, runtime::Worker& worker)
{
    runtime::Device& device = worker.device();
    kernels::Memory& memory = shard.budget ? static_cast<kernels::Memory&>(*shard.budget) : device;
    if (shard.carry_nnz > 0) {
        shard.carry_out = kernels::DeviceArray<T>(memory, 1);
    }
    if (!device.shares_host_memory()) {
        shard.x = kernels::DeviceArray<T>(memory, static_cast<std::size_t>(matrix.plan.cols));
        shard.y = kernels::DeviceArray<T>(memory, static_cast<std::size_t>(shard.owned.rows));
        matrix.x_buffers[static_cast<std::size_t>(worker.rank())] = shard.x.data();
    }
    matrix.carry_order->open(worker.rank(), device);
    if (matrix.channel) {
        matrix.runtime->connection.transport->open(*matrix.channel, worker);
    }
    worker.stream().synchronize();
}

/// Whether a worker multiplies the caller's columns and values where they are.
template <class T>
bool uses_callers_arrays(const MatrixState<T>& matrix, runtime::Device& device, const CsrView<T>& a,
                         const DistributeOptions& options)
{
    return device.shares_host_memory() && a.col_idx.type() == IndexType::i32 && (options.borrow || matrix.source);
}

/// Copies columns and values to the device, unless they stay where they are.
template <class T>
void upload_shard(MatrixState<T>& matrix, runtime::Worker& worker, const CsrView<T>& a,
                  const DistributeOptions& options, UploadProgress& progress)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    auto shard_owner = std::make_unique<Shard<T>>();
    Shard<T>& shard = *shard_owner;
    matrix.shards[rank] = std::move(shard_owner);
    shard.part = matrix.plan.shards[rank].part;
    const std::int64_t nnz = shard.part.nnz();
    if (shard.part.start_flag) {
        const std::int64_t row_end = std::min(shard.part.end_idx, a.row_ptr[shard.part.start_row + 1]);
        shard.carry_nnz = row_end - shard.part.start_idx;
    }
    if (matrix.source || uses_callers_arrays(matrix, worker.device(), a, options)) {
        progress.add(static_cast<double>(nnz) * (sizeof(T) + sizeof(std::int32_t)));
        return;
    }
    const auto entries = static_cast<std::size_t>(padded(shard.carry_nnz) + nnz - shard.carry_nnz);
    shard.col_idx = kernels::DeviceArray<std::int32_t>(worker.device(), entries);
    shard.values = kernels::DeviceArray<T>(worker.device(), entries);
    upload_columns(shard, worker, a.col_idx);
    progress.add(static_cast<double>(nnz) * sizeof(std::int32_t));
    upload_values(shard, worker, a.values);
    progress.add(static_cast<double>(nnz) * sizeof(T));
}

/// Makes an uploaded shard ready to be multiplied.
template <class T>
void prepare_shard(MatrixState<T>& matrix, runtime::Worker& worker, const CsrView<T>& a,
                   const DistributeOptions& options)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    runtime::Device& device = worker.device();
    Shard<T>& shard = *matrix.shards[rank];
    ShardPlan& plan = matrix.plan.shards[rank];
    const std::int64_t nnz = shard.part.nnz();
    const bool in_place = uses_callers_arrays(matrix, device, a, options);
    if (matrix.source && !in_place) {
        shard.owned.rows = shard.part.owned_rows();
        shard.budget = std::make_unique<MemoryBudget>(
            device, options.device_bytes,
            fmt::format("a streamed matrix on {} {}", to_string(device.info().kind), device.info().index));
        // First, as the pieces take what these leave.
        open_shard(matrix, shard, worker);
        shard.streamed = std::make_unique<StreamedPart<T>>(worker, *shard.budget, *matrix.source, shard.part,
                                                           shard.carry_nnz, plan.kernel, options);
        worker.stream().synchronize();
        return;
    }

    const std::int32_t* columns = nullptr;
    const T* values = nullptr;
    std::int64_t owned_position = padded(shard.carry_nnz);
    if (in_place) {
        columns = static_cast<const std::int32_t*>(a.col_idx.data()) + shard.part.start_idx;
        values = a.values + shard.part.start_idx;
        owned_position = shard.carry_nnz;
    } else {
        columns = shard.col_idx.data();
        values = shard.values.data();
    }
    const std::int64_t cols =
        matrix.by_entries ? matrix.x_slices[rank + 1] - matrix.x_slices[rank] + matrix.ghosts[rank] : a.cols;

    shard.owned = {shard.part.owned_rows(),  cols,
                   nnz - shard.carry_nnz,    build_row_pointers(shard, worker, a.row_ptr, options.row_pointers),
                   columns + owned_position, values + owned_position};
    RowStatistics rows;
    if (shard.owned.rows > 0) {
        rows = a.row_ptr.visit([&](const auto* p) {
            return row_statistics(shard.owned.rows, IndexView(p + shard.part.first_owned_row()));
        });
    }
    const auto context = worker.context();
    prepare_kernel(plan, shard, worker, options, rows);
    if (shard.carry_nnz > 0) {
        const std::int64_t pointers[2] = {0, shard.carry_nnz};
        shard.carry_row_ptr = kernels::DeviceArray<std::int64_t>(device, 2);
        device.upload(worker.stream(), shard.carry_row_ptr.data(), pointers, sizeof(pointers));
        shard.carry = {1, cols, shard.carry_nnz, IndexView(shard.carry_row_ptr.data()), columns, values};
        const RowStatistics one_row{1, shard.carry_nnz, 0, shard.carry_nnz, static_cast<double>(shard.carry_nnz), 0};
        shard.carry_operator = kernels::choose_spmv<T>(device.info().kind, "auto", options.determinism, one_row, cols)
                                   .prepare(shard.carry, one_row, context);
    }
    find_interior(matrix, shard, worker, a);
    open_shard(matrix, shard, worker);
}

/// The ghosts of each device while a matrix is distributed.
struct GhostSearch {
    explicit GhostSearch(int devices)
        : sets(static_cast<std::size_t>(devices)), lists(static_cast<std::size_t>(devices))
    {
    }
    std::vector<std::unique_ptr<kernels::ColumnSet>> sets;  ///< made, used and freed on the workers
    std::vector<std::vector<std::int32_t>> lists;
};

/// Counts the columns of the shard outside the device's slice of x.
template <class T>
void find_ghosts(MatrixState<T>& matrix, runtime::Worker& worker, GhostSearch& search)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const Shard<T>& shard = *matrix.shards[rank];
    const auto context = worker.context();
    auto set = std::make_unique<kernels::ColumnSet>(matrix.plan.cols, context);
    for (const Piece& piece : pieces_of(shard)) {
        kernels::add_outside(*set, shard.col_idx.data() + piece.position, piece.n, matrix.x_slices[rank],
                             matrix.x_slices[rank + 1], context);
    }
    matrix.ghosts[rank] = kernels::count_columns(*set, context);
    search.sets[rank] = std::move(set);
}

/// Numbers the columns of the shard anew, the ghosts behind the device's slice of x, and lists the ghosts.
template <class T>
void renumber_shard(MatrixState<T>& matrix, runtime::Worker& worker, GhostSearch& search)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    runtime::Device& device = worker.device();
    Shard<T>& shard = *matrix.shards[rank];
    const auto context = worker.context();
    const kernels::ColumnSet& set = *search.sets[rank];
    for (const Piece& piece : pieces_of(shard)) {
        kernels::renumber_columns(set, shard.col_idx.data() + piece.position, piece.n, matrix.x_slices[rank],
                                  matrix.x_slices[rank + 1], context);
    }
    const auto count = static_cast<std::size_t>(matrix.ghosts[rank]);
    shard.ghosts = kernels::DeviceArray<std::int32_t>(device, count);
    kernels::list_columns(set, shard.ghosts.data(), context);
    search.lists[rank].resize(count);
    device.download(worker.stream(), search.lists[rank].data(), shard.ghosts.data(), count * sizeof(std::int32_t));
    worker.stream().synchronize();
    search.sets[rank].reset();
}

/// Makes what a device needs to send and to receive entries.
template <class T>
void open_halo(MatrixState<T>& matrix, runtime::Worker& worker, const GhostSearch& search)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    runtime::Device& device = worker.device();
    Shard<T>& shard = *matrix.shards[rank];
    const std::vector<std::int32_t> list = matrix.halo.packed(worker.rank(), search.lists, matrix.x_slices);
    shard.packed_list = kernels::DeviceArray<std::int32_t>(device, list.size());
    device.upload(worker.stream(), shard.packed_list.data(), list.data(), list.size() * sizeof(std::int32_t));
    shard.packed = kernels::DeviceArray<T>(device, list.size());
    matrix.packed[rank] = shard.packed.data();
    // Aligned as its slice is in an x by rows, since either may be what arrives there.
    constexpr std::int64_t line = 32;
    const std::int64_t first = matrix.x_slices[rank];
    const std::int64_t begin = first / line * line;
    shard.local_x = kernels::DeviceArray<T>(
        device, static_cast<std::size_t>(matrix.x_slices[rank + 1] - begin + matrix.ghosts[rank]));
    matrix.local_x[rank] = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(shard.local_x.data()) -
                                                   static_cast<std::uintptr_t>(begin) * sizeof(T));
}

/// Most entries that a device receives at an apply with x by rows.
std::int64_t largest_halo(const Plan& plan)
{
    std::int64_t largest = 0;
    for (const ShardPlan& shard : plan.shards) {
        largest = std::max(largest, shard.halo_entries);
    }
    return largest;
}

/// Chooses ranges or entries, and for entries numbers all columns anew.
template <class T>
void choose_exchange(MatrixState<T>& matrix, Exchange wanted, GhostSearch& search)
{
    RuntimeState& runtime = *matrix.runtime;
    const std::int64_t range = largest_halo(matrix.plan);
    const bool may_pay =
        wanted == Exchange::entries || (wanted == Exchange::automatic && runtime::entries_pay(0, range, sizeof(T)));
    if (!may_pay || runtime.devices() == 1) {
        return;
    }
    runtime.submit([&](runtime::Worker& worker, runtime::Rendezvous&) { find_ghosts(matrix, worker, search); }).get();
    const std::int64_t entries = *std::max_element(matrix.ghosts.begin(), matrix.ghosts.end());
    matrix.by_entries = wanted == Exchange::entries || runtime::entries_pay(entries, range, sizeof(T));
    if (!matrix.by_entries) {
        std::fill(matrix.ghosts.begin(), matrix.ghosts.end(), 0);
        runtime
            .submit([&](runtime::Worker& worker, runtime::Rendezvous&) {
                search.sets[static_cast<std::size_t>(worker.rank())].reset();
            })
            .get();
        return;
    }
    runtime.submit([&](runtime::Worker& worker, runtime::Rendezvous&) { renumber_shard(matrix, worker, search); })
        .get();
    matrix.halo = runtime::Halo(search.lists, matrix.x_slices, sizeof(T));
    matrix.plan.exchange = "entries";
    for (std::size_t i = 0; i < matrix.plan.shards.size(); ++i) {
        ShardPlan& shard = matrix.plan.shards[i];
        const auto touched = [&](std::int64_t columns) {
            return std::min(shard.part.nnz(), columns) * static_cast<std::int64_t>(sizeof(T));
        };
        shard.apply_bytes += touched(matrix.x_slices[i + 1] - matrix.x_slices[i] + matrix.ghosts[i]) -
                             touched(shard.end_column - shard.first_column);
        shard.halo_entries = matrix.ghosts[i];
    }
}

/// The arrays of a streamed matrix, locked by one worker for all devices.
template <class T>
std::unique_ptr<StreamSource<T>> lock_source(RuntimeState& runtime, const CsrView<T>& a, bool pin)
{
    std::unique_ptr<StreamSource<T>> source;
    runtime
        .submit([&](runtime::Worker& worker, runtime::Rendezvous&) {
            if (worker.rank() == 0) {
                source = std::make_unique<StreamSource<T>>(runtime.locked, worker.device(), a, pin);
            }
        })
        .get();
    return source;
}

/// What the links carry of an encoded matrix: in the plan, and a line of the report.
template <class T>
void describe_encoding(MatrixState<T>& matrix)
{
    std::int64_t raw = 0;
    std::int64_t sent = 0;
    std::int64_t kept = 0;
    bool refused = false;
    std::vector<double> seconds;
    for (std::size_t i = 0; i < matrix.shards.size(); ++i) {
        const auto& part = matrix.shards[i]->streamed;
        ShardPlan& plan = matrix.plan.shards[i];
        raw += plan.apply_bytes;
        sent += part->link_bytes();
        kept += part->encoded_bytes();
        refused = refused || part->encode_refused();
        seconds.push_back(part->encode_seconds());
        plan.matrix_bytes = part->link_bytes();
        plan.apply_bytes = part->link_bytes();
    }
    matrix.raw_bytes = raw;
    matrix.setup.push_back({"encode", seconds, true});
    const double nonzeros = std::max(1.0, static_cast<double>(matrix.plan.nnz));
    matrix.notes.push_back(fmt::format(
        "encoded: {:.2f} bytes a nonzero over the links instead of {:.2f}, and {:.1f} MB of page-locked host "
        "memory",
        static_cast<double>(sent) / nonzeros, static_cast<double>(raw) / nonzeros, static_cast<double>(kept) * 1e-6));
    if (refused) {
        matrix.notes.push_back("the system refused page-locked memory for encoded pieces: they are copied as they are");
    }
}

/// For each device, how many of the devices behind it may add to its last row (those in between that do not add zeros).
std::vector<int> carry_counts(const Partition& partition)
{
    const auto& parts = partition.parts;
    std::vector<int> counts(parts.size(), 0);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (!parts[i].start_flag) {
            continue;
        }
        std::size_t owner = i;
        do {
            --owner;
        } while (parts[owner].owned_rows() == 0);
        counts[owner] = static_cast<int>(i - owner);
    }
    return counts;
}

}  // namespace

template <class T>
std::shared_ptr<MatrixState<T>> distribute(const std::shared_ptr<RuntimeState>& runtime, const CsrView<T>& a,
                                           const DistributeOptions& options)
{
    runtime->require_live();
    const auto start = Clock::now();
    validate(a);
    const double validated = seconds_since(start);

    const int devices = runtime->devices();
    auto matrix = std::make_shared<MatrixState<T>>(devices);
    matrix->runtime = runtime;
    double split = 0;
    matrix->plan = make_plan(*runtime, a, options, &split);
    const double planned = seconds_since(start);
    if (options.progress) {
        options.progress("partition", 1.0);
    }

    for (const auto& part : matrix->plan.partition.parts) {
        matrix->any_carry = matrix->any_carry || part.start_flag;
    }
    matrix->row_slices = row_slices(matrix->plan);
    matrix->x_even = even_slices(a.cols, devices);
    matrix->x_slices = x_slices(matrix->plan);
    std::int64_t needed = 0;
    for (const ShardPlan& shard : matrix->plan.shards) {
        matrix->x_needed.push_back({shard.first_column, shard.end_column});
        needed += shard.end_column - shard.first_column;
        matrix->exchanges = matrix->exchanges || shard.halo_entries > 0;
    }
    // Every link carries about its slice either way, and a gather costs a meeting of all devices.
    matrix->upload_needed = needed <= a.cols + a.cols / 4;
    matrix->carry_count = carry_counts(matrix->plan.partition);

    matrix->setup = {{"validate", {validated}, true},
                     {"partition", {split}, true},
                     {"examine", {planned - validated - split}, true}};
    if (options.mode == Mode::streamed) {
        matrix->mode = Mode::streamed;
        const auto begin = Clock::now();
        matrix->source = lock_source(*runtime, a, options.pin);
        if (!runtime->shared_memory()) {
            matrix->setup.push_back({"page-lock", {seconds_since(begin)}, true});
        }
        if (matrix->source->refused()) {
            matrix->notes.push_back(
                "the system refused to page-lock the whole matrix: what is not goes to the GPUs through "
                "pinned buffers, which is slower");
        }
    }

    double total_bytes = static_cast<double>(a.nnz) * (sizeof(T) + sizeof(std::int32_t));
    UploadProgress progress(options.progress, total_bytes);
    const auto timed = [&](const char* phase, const auto& work) {
        std::vector<double> seconds(static_cast<std::size_t>(devices));
        runtime
            ->submit([&](runtime::Worker& worker, runtime::Rendezvous&) {
                const auto begin = Clock::now();
                work(worker);
                seconds[static_cast<std::size_t>(worker.rank())] = seconds_since(begin);
            })
            .get();
        matrix->setup.push_back({phase, seconds, true});
    };
    timed("upload", [&](runtime::Worker& worker) { upload_shard(*matrix, worker, a, options, progress); });

    GhostSearch search(devices);
    if (options.mode == Mode::resident && !options.borrow && matrix->exchanges &&
        (options.exchange == Exchange::entries ||
         (options.exchange == Exchange::automatic && options.x_layout == Layout::rows &&
          runtime->connection.transport))) {
        const auto begin = Clock::now();
        choose_exchange(*matrix, options.exchange, search);
        matrix->setup.push_back({"exchange", {seconds_since(begin)}, true});
    }
    if (runtime->connection.transport) {
        std::int64_t most = a.cols;
        for (int i = 0; matrix->by_entries && i < devices; ++i) {
            most = std::max(most, matrix->halo.buffer_entries(i));
        }
        matrix->channel =
            runtime->connection.transport->make_channel(devices, most * static_cast<std::int64_t>(sizeof(T)));
    }
    timed("prepare", [&](runtime::Worker& worker) {
        if (matrix->by_entries) {
            open_halo(*matrix, worker, search);
        }
        prepare_shard(*matrix, worker, a, options);
        if (worker.rank() == 0 && matrix->any_carry) {
            *matrix->carries =
                runtime::PinnedBuffer(worker.device(), 2 * static_cast<std::size_t>(devices) * sizeof(T));
            std::fill_n(static_cast<T*>(matrix->carries->data()), 2 * devices, T{0});
        }
    });
    if (matrix->source && !runtime->shared_memory() && options.encoding != StreamEncoding::none) {
        describe_encoding(*matrix);
    }
    return matrix;
}

template <class T>
void update_values(const std::shared_ptr<MatrixState<T>>& matrix, const T* values)
{
    matrix->runtime
        ->submit(
            [&](runtime::Worker& worker, runtime::Rendezvous&) {
                Shard<T>& shard = *matrix->shards[static_cast<std::size_t>(worker.rank())];
                if (matrix->source) {
                    if (values != matrix->source->a.values) {
                        throw Error(
                            ErrorCode::usage,
                            "this matrix is streamed from the caller's values: write the new ones into the same "
                            "array");
                    }
                    if (worker.rank() == 0) {
                        matrix->source->values->refresh();
                    }
                    if (shard.streamed) {
                        shard.streamed->update_values(worker);
                    }
                } else if (shard.values.size() == 0 && shard.part.nnz() > 0) {
                    if (values + shard.part.start_idx !=
                        (shard.carry_nnz > 0 ? shard.carry.values : shard.owned.values)) {
                        throw Error(ErrorCode::usage,
                                    "this matrix borrows the caller's values: write the new ones into the same array");
                    }
                } else {
                    upload_values(shard, worker, values);
                }
                if (shard.owned_operator) {
                    shard.owned_operator->update_values(worker.context());
                }
                if (shard.carry_operator) {
                    shard.carry_operator->update_values(worker.context());
                }
            },
            {}, true)
        .get();
}

template std::shared_ptr<MatrixState<float>> distribute(const std::shared_ptr<RuntimeState>&, const CsrView<float>&,
                                                        const DistributeOptions&);
template std::shared_ptr<MatrixState<double>> distribute(const std::shared_ptr<RuntimeState>&, const CsrView<double>&,
                                                         const DistributeOptions&);
template void update_values(const std::shared_ptr<MatrixState<float>>&, const float*);
template void update_values(const std::shared_ptr<MatrixState<double>>&, const double*);

}  // namespace detail
}  // namespace rmsp
