#include "runtime/matrix/distribute.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include <kernels/spmv/formats.hpp>
#include <kernels/steps/support/support.hpp>

#include "core/clock.hpp"
#include "runtime/matrix/balance.hpp"
#include "runtime/matrix/columns.hpp"
#include "runtime/matrix/exchange.hpp"
#include "runtime/matrix/prepare_kernel.hpp"
#include "runtime/matrix/upload.hpp"
#include "runtime/plan/plan_exchange.hpp"
#include "runtime/plan/planner.hpp"
#include "runtime/plan/streamed_kernels.hpp"

namespace rmsp::detail {
namespace {

/// Nonzeros before one of the shard's owned rows.
template <class T>
std::int64_t nonzeros_before(const Shard<T>& shard, engine::Worker& worker, std::int64_t row)
{
    return shard.owned.row_ptr.visit([&](const auto* p) -> std::int64_t {
        std::remove_cvref_t<decltype(*p)> pointer = 0;
        worker.device().download(worker.stream(), &pointer, p + row, sizeof(pointer));
        worker.stream().synchronize();
        return pointer;
    });
}

/// Finds the rows that are multiplied while x is exchanged, if that pays.
template <class T>
void find_interior(const MatrixState<T>& matrix, Shard<T>& shard, engine::Worker& worker)
{
    // A product on two streams costs two events more, and a second launch.
    constexpr std::int64_t fewest_nonzeros = 2'000'000;
    const auto rank = static_cast<std::size_t>(worker.rank());
    if (matrix.coordinates || !matrix.channel || !matrix.exchanges || shard.owned.nnz < fewest_nonzeros) {
        return;
    }
    engine::Device& device = worker.device();
    const kernels::DeviceArray<std::int64_t> run(device, 2);
    const std::int64_t slice = matrix.by_entries ? 0 : matrix.x_slices[rank] - matrix.plan.shards[rank].index_base;
    kernels::interior_rows(shard.owned.row_ptr, shard.owned.rows, shard.owned.col_idx, slice,
                           slice + matrix.x_slices[rank + 1] - matrix.x_slices[rank], run.data(), worker.context());
    std::int64_t found[2] = {0, 0};
    device.download(worker.stream(), found, run.data(), sizeof(found));
    worker.stream().synchronize();
    if (found[0] < found[1] &&
        nonzeros_before(shard, worker, found[1]) - nonzeros_before(shard, worker, found[0]) >= fewest_nonzeros) {
        shard.interior = {found[0], found[1]};
    }
}

/// What products by rows need besides the part of the matrix: room for x and y where they are not on the device, and events.
template <class T>
void open_shard(MatrixState<T>& matrix, Shard<T>& shard, engine::Worker& worker)
{
    engine::Device& device = worker.device();
    // Of several devices, others read it, which the pool is not for.
    kernels::Memory& memory = shard.budget               ? static_cast<kernels::Memory&>(*shard.budget)
                              : matrix.shards.size() > 1 ? device
                                                         : *worker.context().memory;
    if (shard.carry_nnz > 0) {
        shard.carry_out = kernels::DeviceArray<T>(memory, 1);
    }
    if (!device.shares_host_memory()) {
        shard.x = kernels::DeviceArray<T>(memory, static_cast<std::size_t>(matrix.columns.size()));
        shard.y = kernels::DeviceArray<T>(memory, static_cast<std::size_t>(shard.owned.rows));
        shard.y_there = worker.device().make_event(false);
        for (int i = 0; i < host_y_stretches; ++i) {
            shard.y_done.push_back(worker.device().make_event(false));
        }
        matrix.x_buffers[static_cast<std::size_t>(worker.rank())] = shard.x.data();
    }
    matrix.carry_order->open(worker.rank(), device);
    if (matrix.channel) {
        matrix.runtime->connection.transport->open(*matrix.channel, worker);
    }
    if (worker.rank() == 0 && matrix.any_carry) {
        const auto entries = 2 * matrix.shards.size();
        *matrix.carries = engine::PinnedBuffer(device, entries * sizeof(T));
        std::fill_n(static_cast<T*>(matrix.carries->data()), entries, T{0});
    }
    worker.stream().synchronize();
}

/// Notes what the operator for A itself keeps on the device and reads. That for A^T may be made when the plan is in use.
template <class T>
void note_kept(ShardPlan& plan, const kernels::SpmvOperator<T>& made)
{
    if (const std::int64_t bytes = made.format_bytes(); bytes >= 0) {
        plan.apply_bytes += bytes - plan.matrix_bytes;
    }
    plan.matrix_bytes += made.workspace_bytes();
}

/// Builds the operator of the owned rows. The names in the options and the plan are of the kernels for A itself, which may turn
/// out not to be the planned ones; the plan then says so.
template <class T>
void prepare_owned(MatrixState<T>& matrix, Shard<T>& shard, engine::Worker& worker)
{
    const auto context = worker.context();
    const DeviceKind kind = worker.device().info().kind;
    const DistributeOptions& options = matrix.options;
    const bool primary = !transposed(matrix.plan);
    ShardPlan& plan = matrix.plan.shards[static_cast<std::size_t>(worker.rank())];
    if (matrix.coordinates) {
        const kernels::CooShard<T> coo{
            shard.owned.rows, shard.owned.cols,    shard.owned.nnz,   CooOrder::by_row, shard.part.first_owned_row(),
            shard.owned_rows, shard.owned.col_idx, shard.owned.values};
        shard.owned_operator =
            kernels::choose_spmv_coo<T>(kind, primary ? plan.kernel : "auto", options.determinism, coo.order)
                .prepare(coo, context);
        if (primary) {
            note_kept(plan, *shard.owned_operator);
        }
    } else if (primary) {
        prepare_kernel(plan, shard, worker, options, shard.statistics);
    } else {
        const auto prepare = [&](const kernels::SpmvKernel<T>& kernel) {
            return kernel.prepare(shard.owned, shard.statistics, context);
        };
        try {
            shard.owned_operator =
                prepare(kernels::choose_spmv<T>(kind, "auto", options.determinism, shard.statistics, shard.owned.cols));
        } catch (const Error& e) {
            // The fastest kernel may keep a copy of the matrix. Where there is no room for it, one that does not will do.
            if (e.code() != ErrorCode::out_of_memory) {
                throw;
            }
            shard.owned_operator =
                prepare(choose_streamed_spmv<T>(kind, "auto", options.determinism, shard.statistics, shard.owned.cols));
        }
    }
}

/// Makes products by rows ready on one device.
template <class T>
void prepare_rows(MatrixState<T>& matrix, engine::Worker& worker)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    Shard<T>& shard = *matrix.shards[rank];
    if (shard.streams) {
        shard.budget = make_budget(worker.device(), matrix.options);
        // First, as the pieces take what these leave.
        open_shard(matrix, shard, worker);
        shard.streamed =
            std::make_unique<StreamedPart<T>>(worker, *shard.budget, *matrix.source, shard.part, shard.carry_nnz,
                                              matrix.plan.shards[rank].kernel, matrix.options);
        worker.stream().synchronize();
        return;
    }
    if (matrix.by_entries) {
        const std::int64_t own = matrix.x_slices[rank + 1] - matrix.x_slices[rank];
        shard.owned.cols = own + matrix.ghosts[rank];
        shard.owned.early_cols = matrix.hides_entries ? own + matrix.popular[rank] : 0;
        shard.owned.diagonal += matrix.plan.shards[rank].index_base - matrix.x_slices[rank];
        shard.carry.cols = shard.owned.cols;
    }
    prepare_owned(matrix, shard, worker);
    if (shard.carry_nnz > 0) {
        const RowStatistics one_row{1, shard.carry_nnz, 0, shard.carry_nnz, static_cast<double>(shard.carry_nnz), 0};
        shard.carry_operator = kernels::choose_spmv<T>(worker.device().info().kind, "auto", matrix.options.determinism,
                                                       one_row, shard.carry.cols)
                                   .prepare(shard.carry, one_row, worker.context());
    }
    find_interior(matrix, shard, worker);
    if (!shard.interior.empty() || shard.owned.early_cols > 0) {
        shard.begun = worker.device().make_event(false);
        shard.exchanged = worker.device().make_event(false);
    }
    open_shard(matrix, shard, worker);
}

/// The arrays of a streamed matrix, locked by one worker for all devices.
template <class T>
std::unique_ptr<StreamSource<T>> lock_source(RuntimeState& runtime, const CsrView<T>& a, bool pin)
{
    std::unique_ptr<StreamSource<T>> source;
    runtime
        .submit([&](engine::Worker& worker, engine::Rendezvous&) {
            if (worker.rank() == 0) {
                source = std::make_unique<StreamSource<T>>(runtime.locked, worker.device(), a, pin);
            }
        })
        .get();
    return source;
}

/// Makes products by columns ready on one device.
template <class T>
void prepare_columns(MatrixState<T>& matrix, ColumnProduct<T>& product, engine::Worker& worker, bool primary)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    ShardPlan& plan = matrix.plan.shards[rank];
    std::string kernel = primary ? plan.kernel : "auto";
    const kernels::SpmvOperator<T>* const made = product.open(worker, matrix, kernel);
    if (primary && made != nullptr) {
        plan.kernel = kernel;
        note_kept(plan, *made);
    }
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
void prepare_apply(MatrixState<T>& matrix, bool of_transpose)
{
    std::lock_guard lock(matrix.preparing);
    RuntimeState& runtime = *matrix.runtime;
    if (matrix.mode == Mode::streamed && of_transpose) {
        throw Error(ErrorCode::usage, "a streamed matrix has no transposed product; distribute the transpose as well");
    }
    if (matrix.by_entries && of_transpose) {
        throw Error(ErrorCode::usage,
                    "the columns of this matrix were numbered anew, to exchange x by entries, so it has no transposed "
                    "product: distribute it with DistributeOptions::transposed");
    }
    const int devices = runtime.devices();
    const bool primary = !of_transpose;
    if (multiplies_by_rows(matrix.plan, of_transpose)) {
        if (matrix.rows_ready) {
            return;
        }
        if (runtime.connection.transport) {
            std::int64_t most = matrix.columns.size();
            for (const GhostMessage& message : matrix.messages) {
                for (int i = 0; !message.empty && i < devices; ++i) {
                    most = std::max(most, message.halo.buffer_entries(i));
                }
            }
            matrix.channel =
                runtime.connection.transport->make_channel(devices, most * static_cast<std::int64_t>(sizeof(T)));
        }
        runtime.submit([&](engine::Worker& worker, engine::Rendezvous&) { prepare_rows(matrix, worker); }).get();
        matrix.rows_ready = true;
        return;
    }
    auto& place = matrix.column_product(of_transpose);
    if (place) {
        return;
    }
    const auto product = std::make_shared<ColumnProduct<T>>(matrix, of_transpose);
    // A device that has no room must not keep the others' part of it.
    const auto close = [&] {
        runtime.submit([&](engine::Worker& worker, engine::Rendezvous&) { product->close(worker.rank()); }).get();
    };
    try {
        runtime
            .submit([&](engine::Worker& worker, engine::Rendezvous&) {
                prepare_columns(matrix, *product, worker, primary);
            })
            .get();
    } catch (...) {
        close();
        throw;
    }
    place = product;
}

namespace {

/// Splits A, by `weights` as make_plan() does, copies each part to its device and makes its kernel ready.
template <class T>
std::shared_ptr<MatrixState<T>> distribute_parts(const std::shared_ptr<RuntimeState>& runtime, const Stored<T>& a,
                                                 const DistributeOptions& options, const std::vector<double>& weights)
{
    runtime->require_live();
    const auto start = core::Clock::now();

    const int devices = runtime->devices();
    auto matrix = std::make_shared<MatrixState<T>>(devices);
    matrix->runtime = runtime;
    matrix->options = options;
    matrix->coordinates = a.coordinates;
    matrix->options.progress = {};
    double split = 0;
    matrix->plan = make_plan(*runtime, a, options, weights, &split);
    const double planned = core::seconds_since(start);
    if (options.progress) {
        options.progress("partition", 1.0);
    }

    if (a.resident != nullptr) {
        a.resident->split(matrix->plan.partition);
    }
    for (const auto& part : matrix->plan.partition.parts) {
        matrix->any_carry = matrix->any_carry || part.start_flag;
    }
    matrix->rows = row_side(matrix->plan);
    matrix->columns = column_side(matrix->plan);
    matrix->row_slices = matrix->rows.slices;
    // Equal slices, which a collective moves fastest.
    matrix->x_even = even_slices(a.cols, devices);
    matrix->x_slices = matrix->columns.slices;
    matrix->x_needed = matrix->columns.touched;
    std::int64_t needed = 0;
    for (std::size_t i = 0; i < matrix->x_needed.size(); ++i) {
        const transport::Range& columns = matrix->x_needed[i];
        needed += columns.end - columns.first;
        matrix->exchanges =
            matrix->exchanges ||
            (!columns.empty() && (columns.first < matrix->x_slices[i] || columns.end > matrix->x_slices[i + 1]));
    }
    // Every link carries about its slice either way, and a gather costs a meeting of all devices.
    matrix->upload_needed = needed <= a.cols + a.cols / 4;
    matrix->carry_count = carry_counts(matrix->plan.partition);

    matrix->setup = {{"partition", {split}, true}, {"examine", {planned - split}, true}};
    if (options.mode == Mode::streamed) {
        matrix->mode = Mode::streamed;
        const auto begin = core::Clock::now();
        matrix->source = lock_source(*runtime, a, options.pin);
        if (!runtime->shared_memory()) {
            matrix->setup.push_back({"page-lock", {core::seconds_since(begin)}, true});
        }
        if (matrix->source->refused()) {
            matrix->notes.push_back(
                "the system refused to page-lock the whole matrix: what is not goes to the GPUs through "
                "pinned buffers, which is slower");
        }
    }

    std::vector<double> upload(static_cast<std::size_t>(devices));
    double total_bytes = static_cast<double>(a.nnz) * (sizeof(T) + sizeof(std::int32_t));
    UploadProgress progress(options.progress, total_bytes);
    runtime
        ->submit([&](engine::Worker& worker, engine::Rendezvous& meeting) {
            const auto begin = core::Clock::now();
            build_shard(*matrix, worker, meeting, a, progress);
            upload[static_cast<std::size_t>(worker.rank())] = core::seconds_since(begin);
        })
        .get();
    if (!matrix->source) {
        matrix->setup.push_back({"upload", upload, true});
    }
    if (may_number_anew(a.format, options) && matrix->exchanges &&
        (options.exchange == Exchange::entries ||
         (options.exchange == Exchange::automatic && options.x_layout == Layout::rows &&
          runtime->connection.transport))) {
        const auto begin = core::Clock::now();
        choose_exchange(*matrix, options.exchange);
        matrix->setup.push_back({"exchange", {core::seconds_since(begin)}, true});
    }
    const auto prepared = core::Clock::now();
    prepare_apply(*matrix, false);
    if (options.transposed) {
        prepare_apply(*matrix, true);
    }
    matrix->setup.push_back(
        {"prepare", std::vector<double>(static_cast<std::size_t>(devices), core::seconds_since(prepared)), true});
    if (matrix->source && !runtime->shared_memory() && options.encoding != StreamEncoding::none) {
        describe_encoding(*matrix);
    }
    return matrix;
}

}  // namespace

template <class T>
std::shared_ptr<MatrixState<T>> distribute(const std::shared_ptr<RuntimeState>& runtime, const Stored<T>& a,
                                           const DistributeOptions& options)
{
    const auto start = core::Clock::now();
    const auto by_weights = [&](const std::vector<double>& weights) {
        return distribute_parts(runtime, a, options, weights);
    };
    auto matrix = by_weights({});
    return balance_time<T>(std::move(matrix), options, start, by_weights);
}

#define RMSP_INSTANTIATE(T)                                                                                     \
    template std::shared_ptr<MatrixState<T>> distribute(const std::shared_ptr<RuntimeState>&, const Stored<T>&, \
                                                        const DistributeOptions&);                              \
    template void prepare_apply(MatrixState<T>&, bool);
RMSP_INSTANTIATE(float)
RMSP_INSTANTIATE(double)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::detail
