#include "runtime/matrix/row_product.hpp"

#include <algorithm>
#include <type_traits>

#include <kernels/spmv/formats.hpp>
#include <kernels/steps/support/support.hpp>

#include "runtime/matrix/prepare_kernel.hpp"
#include "runtime/plan/streamed_kernels.hpp"

namespace rmsp::distributed {
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
RowProduct<T>::RowProduct(MatrixState<T>& matrix)
    : matrix_(matrix),
      shards_(matrix.shards.size()),
      // Equal slices, which a collective moves fastest.
      x_even_(plan::even_slices(matrix.columns.size(), matrix.runtime->devices())),
      x_slices_(matrix.columns.slices),
      x_needed_(matrix.columns.touched),
      x_buffers_(shards_.size()),
      ghosts_(shards_.size()),
      popular_(shards_.size()),
      local_x_(shards_.size()),
      carry_order_(matrix.runtime->devices()),
      carry_count_(carry_counts(matrix.plan.partition)),
      any_carry_(plan::shares_rows(matrix.plan.partition))
{
    for (auto& shard : shards_) {
        shard = std::make_unique<RowShard<T>>();
    }
    std::int64_t needed = 0;
    for (std::size_t i = 0; i < x_needed_.size(); ++i) {
        const transport::Range& columns = x_needed_[i];
        needed += columns.end - columns.first;
        exchanges_ =
            exchanges_ || (!columns.empty() && (columns.first < x_slices_[i] || columns.end > x_slices_[i + 1]));
    }
    // Every link carries about its slice either way, and a gather costs a meeting of all devices.
    upload_needed_ = needed <= x_slices_.back() + x_slices_.back() / 4;
}

template <class T>
void RowProduct<T>::find_interior(Shard<T>& shard, RowShard<T>& own, engine::Worker& worker) const
{
    // A product on two streams costs two events more, and a second launch.
    constexpr std::int64_t fewest_nonzeros = 2'000'000;
    // Some 5 us of a GPU, which are not enough to hide an exchange behind.
    constexpr std::int64_t fewest_bytes = 16'000'000;
    const auto rank = static_cast<std::size_t>(worker.rank());
    if (matrix_.origin.coordinates || !channel_ || !exchanges_ || shard.owned.nnz < fewest_nonzeros ||
        matrix_.plan.shards[rank].apply_bytes < fewest_bytes) {
        return;
    }
    engine::Device& device = worker.device();
    const kernels::DeviceArray<std::int64_t> run(*worker.context().memory, 2);
    const std::int64_t slice = by_entries_ ? 0 : x_slices_[rank] - matrix_.plan.shards[rank].index_base;
    kernels::interior_rows(shard.owned.row_ptr, shard.owned.rows, shard.owned.col_idx, slice,
                           slice + x_slices_[rank + 1] - x_slices_[rank], run.data(), worker.context());
    std::int64_t found[2] = {0, 0};
    device.download(worker.stream(), found, run.data(), sizeof(found));
    worker.stream().synchronize();
    if (found[0] < found[1] &&
        nonzeros_before(shard, worker, found[1]) - nonzeros_before(shard, worker, found[0]) >= fewest_nonzeros) {
        own.interior = {found[0], found[1]};
    }
}

template <class T>
void RowProduct<T>::open_shard(Shard<T>& shard, RowShard<T>& own, engine::Worker& worker)
{
    engine::Device& device = worker.device();
    // Others read x, so of several devices the pool must be one that these reach.
    const bool pooled = shards_.size() == 1 || matrix_.runtime->peers_reach_pools();
    kernels::Memory& memory = shard.budget ? static_cast<kernels::Memory&>(*shard.budget)
                              : pooled     ? *worker.context().memory
                                           : device;
    if (shard.carry_nnz > 0) {
        own.carry_out = kernels::DeviceArray<T>(memory, 1);
    }
    if (!device.shares_host_memory()) {
        if (!matrix_.origin.devices) {
            own.x = kernels::DeviceArray<T>(memory, static_cast<std::size_t>(matrix_.columns.size()));
            own.y = kernels::DeviceArray<T>(memory, static_cast<std::size_t>(shard.owned.rows));
        }
        own.y_there = worker.device().make_event(false);
        for (int i = 0; i < host_y_stretches; ++i) {
            own.y_done.push_back(worker.device().make_event(false));
        }
        x_buffers_[static_cast<std::size_t>(worker.rank())] = own.x.data();
    }
    carry_order_.open(worker.rank(), device);
    if (channel_) {
        matrix_.runtime->connection.transport->open(*channel_, worker);
    }
    if (worker.rank() == 0 && any_carry_) {
        const auto entries = 2 * shards_.size();
        carries_ = engine::PinnedBuffer(device, entries * sizeof(T));
        std::fill_n(static_cast<T*>(carries_.data()), entries, T{0});
    }
    worker.stream().synchronize();
}

template <class T>
void RowProduct<T>::prepare_owned(Shard<T>& shard, RowShard<T>& own, engine::Worker& worker)
{
    const auto context = worker.context();
    const DeviceKind kind = worker.device().info().kind;
    const DistributeOptions& options = matrix_.options;
    const bool primary = !plan::transposed(matrix_.plan);
    ShardPlan& plan = matrix_.plan.shards[static_cast<std::size_t>(worker.rank())];
    if (matrix_.origin.coordinates) {
        const kernels::CooShard<T> coo{
            shard.owned.rows, shard.owned.cols,    shard.owned.nnz,   CooOrder::by_row, shard.part.first_owned_row(),
            shard.owned_rows, shard.owned.col_idx, shard.owned.values};
        own.owned_operator =
            kernels::choose_spmv_coo<T>(kind, primary ? plan.kernel : "auto", options.determinism, coo.order)
                .prepare(coo, context);
        if (primary) {
            note_kept(plan, *own.owned_operator);
        }
    } else if (primary) {
        prepare_kernel(plan, shard, own, worker, options, shard.statistics);
    } else {
        const auto prepare = [&](const kernels::SpmvKernel<T>& kernel) {
            return kernel.prepare(shard.owned, shard.statistics, context);
        };
        try {
            own.owned_operator =
                prepare(kernels::choose_spmv<T>(kind, "auto", options.determinism, shard.statistics, shard.owned.cols));
        } catch (const Error& e) {
            // The fastest kernel may keep a copy of the matrix_. Where there is no room for it, one that does not will
            // do.
            if (e.code() != ErrorCode::out_of_memory) {
                throw;
            }
            own.owned_operator = prepare(
                plan::choose_streamed_spmv<T>(kind, "auto", options.determinism, shard.statistics, shard.owned.cols));
        }
    }
}

template <class T>
void RowProduct<T>::prepare_rows(engine::Worker& worker)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    Shard<T>& shard = *matrix_.shards[rank];
    RowShard<T>& own = *shards_[rank];
    if (shard.streams) {
        shard.budget = make_budget(worker.device(), matrix_.options);
        // First, as the pieces take what these leave.
        open_shard(shard, own, worker);
        shard.streamed =
            std::make_unique<StreamedPart<T>>(worker, *shard.budget, *matrix_.origin.source, shard.part,
                                              shard.carry_nnz, matrix_.plan.shards[rank].kernel, matrix_.options);
        worker.stream().synchronize();
        return;
    }
    if (by_entries_) {
        const std::int64_t slice = x_slices_[rank + 1] - x_slices_[rank];
        shard.owned.cols = slice + ghosts_[rank];
        shard.owned.early_cols = hides_entries_ ? slice + popular_[rank] : 0;
        shard.owned.diagonal += matrix_.plan.shards[rank].index_base - x_slices_[rank];
        shard.carry.cols = shard.owned.cols;
    }
    prepare_owned(shard, own, worker);
    if (shard.carry_nnz > 0) {
        const RowStatistics one_row{1, shard.carry_nnz, 0, shard.carry_nnz, static_cast<double>(shard.carry_nnz), 0};
        own.carry_operator = kernels::choose_spmv<T>(worker.device().info().kind, "auto", matrix_.options.determinism,
                                                     one_row, shard.carry.cols)
                                 .prepare(shard.carry, one_row, worker.context());
    }
    find_interior(shard, own, worker);
    if (!own.interior.empty() || shard.owned.early_cols > 0) {
        own.begun = worker.device().make_event(false);
        own.exchanged = worker.device().make_event(false);
    }
    open_shard(shard, own, worker);
}

template <class T>
void RowProduct<T>::make_ready()
{
    RuntimeState& runtime = *matrix_.runtime;
    if (runtime.connection.transport) {
        std::int64_t most = matrix_.columns.size();
        for (const GhostMessage& message : messages_) {
            for (int i = 0; !message.empty && i < runtime.devices(); ++i) {
                most = std::max(most, message.halo.buffer_entries(i));
            }
        }
        channel_ =
            runtime.connection.transport->make_channel(runtime.devices(), most * static_cast<std::int64_t>(sizeof(T)));
    }
    runtime.submit([&](engine::Worker& worker, engine::Rendezvous&) { prepare_rows(worker); }).get();
}

template <class T>
void RowProduct<T>::update_values(engine::Worker& worker)
{
    RowShard<T>& own = *shards_[static_cast<std::size_t>(worker.rank())];
    if (own.owned_operator) {
        kernels::SpmvOperator<T>& op = *own.owned_operator;
        const std::int64_t read = op.format_bytes();
        const std::int64_t kept = op.workspace_bytes();
        op.update_values(worker.context());
        own.more_read += op.format_bytes() - read;
        own.more_kept += op.workspace_bytes() - kept;
    }
    if (own.carry_operator) {
        own.carry_operator->update_values(worker.context());
    }
}

template <class T>
void RowProduct<T>::close(int rank) noexcept
{
    if (channel_) {
        channel_->close(rank);
    }
    carry_order_.close(rank);
    shards_[static_cast<std::size_t>(rank)].reset();
}

#define RMSP_INSTANTIATE(T)                                      \
    template RowProduct<T>::RowProduct(MatrixState<T>&);         \
    template void RowProduct<T>::make_ready();                   \
    template void RowProduct<T>::update_values(engine::Worker&); \
    template void RowProduct<T>::close(int) noexcept;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
