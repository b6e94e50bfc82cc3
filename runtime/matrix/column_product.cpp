#include "runtime/matrix/column_product.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include <kernels/spmv/formats.hpp>
#include <kernels/steps/support/support.hpp>

#include "runtime/matrix/prepare_kernel.hpp"
#include "runtime/plan/merge.hpp"

namespace rmsp::distributed {
namespace {

/// Room for entries [range.first, range.end) of a vector. It begins at a whole line, so that an entry is aligned alike
/// everywhere.
template <class T>
typename ColumnShard<T>::Piece make_piece(kernels::Memory& memory, const transport::Range& range)
{
    constexpr std::int64_t line = 32;
    const std::int64_t begin = range.empty() ? 0 : range.first / line * line;
    typename ColumnShard<T>::Piece piece;
    piece.storage = kernels::DeviceArray<T>(memory, range.empty() ? 0 : static_cast<std::size_t>(range.end - begin));
    // An address to add entry numbers to, which may lie before the allocation.
    piece.zero = reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(piece.storage.data()) -
                                      static_cast<std::uintptr_t>(begin) * sizeof(T));
    return piece;
}

std::size_t bytes_of(const transport::Range& range, std::size_t entry_bytes)
{
    return range.empty() ? 0 : static_cast<std::size_t>(range.end - range.first) * entry_bytes;
}

/// What of `range` is not in `hole`.
std::array<transport::Range, 2> outside(const transport::Range& range, const transport::Range& hole)
{
    if (range.empty() || hole.empty()) {
        return {range, transport::Range{}};
    }
    return {transport::Range{range.first, std::min(range.end, hole.first)},
            transport::Range{std::max(range.first, hole.end), range.end}};
}

}  // namespace

template <class T>
ColumnProduct<T>::ColumnProduct(MatrixState<T>& matrix, bool of_transpose)
    : matrix_(matrix),
      of_transpose_(of_transpose),
      swapped_(of_transpose != plan::transposed(matrix.plan)),
      coordinates_(matrix.origin.coordinates),
      order_(matrix.plan.order == CooOrder::unsorted ? CooOrder::unsorted : CooOrder::by_column),
      in_order_(matrix.options.determinism != Determinism::none),
      x_(swapped_ ? matrix.rows : matrix.columns),
      y_(swapped_ ? matrix.columns : matrix.rows),
      partials_(matrix.shards.size(), nullptr),
      shards_(matrix.shards.size())
{
    const int devices = static_cast<int>(shards_.size());
    if (devices == 1) {
        // The only device writes y itself, all of it.
        y_.touched[0] = {0, y_.size()};
    }
    RuntimeState& runtime = *matrix.runtime;
    if (runtime.connection.transport) {
        transport_ = &runtime.transport(plan::plan_merge(runtime, matrix.options, y_, sizeof(T)).name);
        channel_ =
            transport_->make_channel(devices, std::max(x_.size(), y_.size()) * static_cast<std::int64_t>(sizeof(T)),
                                     plan::received_bytes(y_, sizeof(T)));
    }
}

template <class T>
const kernels::SpmvOperator<T>* ColumnProduct<T>::open(engine::Worker& worker, std::string& kernel)
{
    const Determinism determinism = matrix_.options.determinism;
    const auto rank = static_cast<std::size_t>(worker.rank());
    engine::Device& device = worker.device();
    const DeviceKind kind = device.info().kind;
    const auto context = worker.context();
    shards_[rank] = std::make_unique<ColumnShard<T>>();
    ColumnShard<T>& own = *shards_[rank];
    Shard<T>& shard = *matrix_.shards[rank];
    if (shard.streams) {
        shard.budget = make_budget(device, matrix_.options);
    }
    kernels::Memory& memory = shard.budget ? static_cast<kernels::Memory&>(*shard.budget) : device;
    const transport::Range touched = y_.touched[rank];
    const std::int64_t rows = touched.empty() ? 0 : touched.end - touched.first;

    // Rows of M are columns here, unless the entries are unsorted.
    const auto by_columns = [&](const kernels::CsrShard<T>& part, const std::string& name) {
        const kernels::CscShard<T> csc{rows,
                                       part.rows,
                                       part.nnz,
                                       part.row_ptr,
                                       part.col_idx,
                                       part.values,
                                       touched.first - matrix_.plan.shards[rank].index_base};
        return kernels::choose_spmv_csc<T>(kind, name, determinism).prepare(csc, context);
    };
    const auto by_coordinates = [&] {
        const kernels::CsrShard<T>& part = shard.owned;
        const kernels::CooShard<T> coo{rows,
                                       x_.size(),
                                       part.nnz,
                                       order_,
                                       touched.first,
                                       swapped_ ? part.col_idx : shard.owned_rows,
                                       swapped_ ? shard.owned_rows : part.col_idx,
                                       part.values};
        return kernels::choose_spmv_coo<T>(kind, kernel, determinism, order_).prepare(coo, context);
    };
    if (!device.shares_host_memory()) {
        own.x = make_piece<T>(memory, x_.touched[rank]);
        own.y = make_piece<T>(memory, hull({y_.slices[rank], y_.slices[rank + 1]}, touched));
        partials_[rank] = own.y.zero;
    } else if (shards_.size() > 1) {
        own.partial = make_piece<T>(memory, touched);
        partials_[rank] = own.partial.zero;
    }
    if (channel_) {
        transport_->open(*channel_, worker);
    }
    if (shard.streams) {
        // Last, as the pieces take what the vectors leave.
        shard.streamed = std::make_unique<StreamedPart<T>>(worker, *shard.budget, *matrix_.origin.source, shard.part,
                                                           shard.carry_nnz, kernel, matrix_.options, touched);
        own.streamed = shard.streamed.get();
        worker.stream().synchronize();
        return nullptr;
    }
    if (shard.part.nnz() > 0 || shards_.size() == 1) {
        const auto prepare = [&] { return coordinates_ ? by_coordinates() : by_columns(shard.owned, kernel); };
        try {
            own.owned_operator = prepare();
        } catch (const Error& e) {
            const auto first = [&](bool sorts) {
                return coordinates_ ? kernels::first_that_sorts(kernels::spmv_coo_kernels<T>(), kind, sorts)
                                    : kernels::first_that_sorts(kernels::spmv_csc_kernels<T>(), kind, sorts);
            };
            // The copy that it sorts may have had no room.
            if (e.code() != ErrorCode::out_of_memory || kernel != first(true) || matrix_.options.kernel != "auto" ||
                determinism != Determinism::none) {
                throw;
            }
            kernel = first(false);
            own.owned_operator = prepare();
        }
    }
    if (shard.carry_nnz > 0) {
        // One column, so pointers do for every format.
        own.carry_operator = by_columns(shard.carry, "auto");
        own.carry_x = shard.part.start_row;
    }
    // Coordinates hold entry numbers of x, pointers count from the first row.
    own.owned_x = coordinates_ ? 0 : shard.part.first_owned_row();

    worker.stream().synchronize();
    return own.owned_operator.get();
}

template <class T>
void ColumnProduct<T>::make_ready()
{
    RuntimeState& runtime = *matrix_.runtime;
    try {
        runtime
            .submit([&](engine::Worker& worker, engine::Rendezvous&) {
                ShardPlan& plan = matrix_.plan.shards[static_cast<std::size_t>(worker.rank())];
                std::string kernel = of_transpose_ ? "auto" : plan.kernel;
                const kernels::SpmvOperator<T>* const made = open(worker, kernel);
                if (!of_transpose_ && made != nullptr) {
                    plan.kernel = kernel;
                    note_kept(plan, *made);
                }
            })
            .get();
    } catch (...) {
        // A device that has no room must not keep the others' part of it.
        runtime.submit([&](engine::Worker& worker, engine::Rendezvous&) { close(worker.rank()); }).get();
        throw;
    }
}

template <class T>
void ColumnProduct<T>::close(int rank) noexcept
{
    if (channel_) {
        channel_->close(rank);
    }
    shards_[static_cast<std::size_t>(rank)].reset();
}

template <class T>
bool ColumnProduct<T>::in_own_slices(const std::vector<std::int64_t>& slices) const
{
    for (std::size_t i = 0; i < x_.touched.size(); ++i) {
        const transport::Range& needed = x_.touched[i];
        if (!needed.empty() && (needed.first < slices[i] || needed.end > slices[i + 1])) {
            return false;
        }
    }
    return true;
}

template <class T>
typename ColumnProduct<T>::PlacedX ColumnProduct<T>::place_x(engine::Worker& worker, engine::Rendezvous& meeting,
                                                             const Source<T>& x, PhaseProbe* probe)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    if (x.vector) {
        VectorState<T>& vector = *x.vector;
        if (vector.layout == Layout::replicated || !channel_) {
            // One device, or one memory: the slices lie behind each other, so the first is all of x.
            return {vector.slices[vector.layout == Layout::replicated ? rank : 0], false};
        }
        if (!in_own_slices(vector.offsets)) {
            channel_->gather(worker, worker.stream(), meeting,
                             {vector.entry_zero, vector.offsets, x_.touched, sizeof(T)}, [] {});
            if (probe != nullptr) {
                probe->mark(worker, "x exchange");
            }
            return {static_cast<const T*>(vector.entry_zero[rank]), true};
        }
        return {static_cast<const T*>(vector.entry_zero[rank]), false};
    }
    engine::Device& device = worker.device();
    if (device.shares_host_memory()) {
        return {x.host, false};
    }
    const transport::Range needed = x_.touched[rank];
    T* const zero = shards_[rank]->x.zero;
    upload_vector(worker, shards_[rank]->streamed, zero + needed.first, x.host + needed.first,
                  bytes_of(needed, sizeof(T)));
    if (probe != nullptr) {
        probe->mark(worker, "x upload");
    }
    return {zero, false};
}

template <class T>
void ColumnProduct<T>::multiply(engine::Worker& worker, const engine::Rendezvous& meeting, T alpha, const T* x, T beta,
                                T* y, const transport::Range& kept)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const auto context = worker.context();
    ColumnShard<T>& own = *shards_[rank];
    const transport::Range touched = y_.touched[rank];
    // What the operators do not scale: entries of others, which begin at 0, and entries of `kept` that no operator
    // touches. Pieces only add.
    const bool adds = own.streamed != nullptr;
    if (beta != T{0} || adds) {
        for (const transport::Range& range : outside(touched, kept)) {
            kernels::fill(y + range.first, range.end - range.first, T{0}, context);
        }
    }
    for (const transport::Range& range : outside(kept, adds ? transport::Range{} : touched)) {
        kernels::add_partials(y, range.first, range.end, beta, nullptr, 0, context);
    }
    if (adds) {
        own.streamed->add_columns(worker, meeting, alpha, x, y + touched.first);
        return;
    }
    if (own.owned_operator) {
        own.owned_operator->apply(alpha, x + own.owned_x, beta, y + touched.first, context);
    }
    if (own.carry_operator) {
        own.carry_operator->apply(alpha, x + own.carry_x, T{1}, y + touched.first, context);
    }
}

template <class T>
void ColumnProduct<T>::apply(engine::Worker& worker, engine::Rendezvous& meeting, T alpha, const Source<T>& x, T beta,
                             const Target<T>& y, PhaseProbe* probe)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    engine::Device& device = worker.device();
    engine::Stream& stream = worker.stream();
    ColumnShard<T>& own = *shards_[rank];
    const bool shared = device.shares_host_memory();
    const bool alone = shards_.size() == 1;
    const bool copy_y = !y.vector && !shared;
    const transport::Range slice{y_.slices[rank], y_.slices[rank + 1]};
    const auto mark = [&](const char* phase) {
        if (probe != nullptr) {
            probe->mark(worker, phase);
        }
    };
    const std::size_t started = probe != nullptr ? probe->mark(worker, "") : 0;
    if (own.streamed != nullptr) {
        own.streamed->start(worker, probe);
    }
    const PlacedX placed = place_x(worker, meeting, x, probe);
    T* const y_zero = copy_y      ? own.y.zero
                      : !y.vector ? y.host
                      : shared    ? y.vector->slices[0]
                      : alone     ? y.vector->slices[rank]
                                  : static_cast<T*>(y.vector->entry_zero[rank]);
    if (copy_y && beta != T{0}) {
        upload_vector(worker, own.streamed, y_zero + slice.first, y.host + slice.first, bytes_of(slice, sizeof(T)));
        mark("y upload");
    }

    // Pieces are on their way from the start on.
    const std::size_t begin = probe == nullptr || own.streamed != nullptr ? started : probe->last(worker);
    if (shared && !alone) {
        multiply(worker, meeting, alpha, placed.zero, T{0}, own.partial.zero, {});
    } else {
        multiply(worker, meeting, alpha, placed.zero, beta, y_zero, slice);
    }
    if (placed.gathered) {
        channel_->settle(worker, worker.stream(), meeting);
    }
    if (probe != nullptr) {
        probe->mark(worker, own.streamed != nullptr ? "stream" : "kernel", stream, begin);
    }
    if (channel_) {
        // The device's own sums are in its slice of y, with beta y.
        channel_->reduce_scatter(worker, meeting,
                                 {copy_y ? std::span<void* const>(partials_) : y.vector->entry_zero, y_.touched,
                                  y_.slices, sizeof(T), y_zero, 1.0, in_order_});
    } else if (!alone) {
        meeting.arrive_and_wait();
        const transport::Reduce reduce{partials_, y_.touched, y_.slices, sizeof(T), y_zero, static_cast<double>(beta),
                                       in_order_};
        transport::add_sums(worker, reduce, reduce.sums(worker.rank()));
    }
    if (copy_y) {
        device.download(stream, y.host + slice.first, y_zero + slice.first, bytes_of(slice, sizeof(T)));
    }
    if (channel_) {
        channel_->settle(worker, worker.stream(), meeting);
    }
    if (!alone || copy_y) {
        mark("merge");
    }
}

template <class T>
void ColumnProduct<T>::update_values(engine::Worker& worker)
{
    ColumnShard<T>& own = *shards_[static_cast<std::size_t>(worker.rank())];
    for (auto* const made : {own.owned_operator.get(), own.carry_operator.get()}) {
        if (made != nullptr) {
            made->update_values(worker.context());
        }
    }
}

#define RMSP_INSTANTIATE(T) template class ColumnProduct<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
