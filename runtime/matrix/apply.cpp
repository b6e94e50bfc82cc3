#include "runtime/matrix/apply.hpp"

#include <algorithm>
#include <functional>

#include <kernels/steps/ghosts/ghosts.hpp>
#include <kernels/steps/support/support.hpp>

#include "runtime/matrix/columns.hpp"

namespace rmsp::detail {
namespace {

/// Where the worker's kernel finds the entry of x that it calls 0 (see ShardPlan::index_base).
template <class T>
struct PlacedX {
    const T* data;
    bool gathered;  ///< through the matrix's channel, which is to be settled
};

/// Whether x is exchanged between the devices as it is, rather than through copies of all of it.
template <class T>
bool exchanged_by_rows(const MatrixState<T>& matrix, const Source<T>& x)
{
    if (!x.vector || x.vector->layout != Layout::rows || !matrix.channel) {
        return false;
    }
    return matrix.by_entries || !matrix.exchanges ? x.vector->offsets == matrix.x_slices
                                                  : x.vector->holds(matrix.x_needed);
}

/// Whether such an x has room for what comes from other devices, so that it need not be copied first.
template <class T>
bool has_ghost_room(const MatrixState<T>& matrix, const VectorState<T>& x)
{
    return std::equal(matrix.ghosts.begin(), matrix.ghosts.end(), x.ghost_room.begin(), x.ghost_room.end(),
                      std::less_equal<>());
}

/// Brings the ghosts of one message; the first of them also brings the slice to where there is room for them. Returns where
/// the worker's kernel finds its entry 0. The channel is to be settled.
template <class T>
const T* exchange_message(MatrixState<T>& matrix, engine::Worker& worker, engine::Stream& stream,
                          engine::Rendezvous& meeting, const VectorState<T>& x, std::size_t index)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const GhostMessage& message = matrix.messages[index];
    const bool room = has_ghost_room(matrix, x);
    const auto& places = room ? x.entry_zero : matrix.local_x;
    T* const slice = static_cast<T*>(places[rank]) + x.offsets[rank];
    const auto write = [&] {
        if (!room && (index == popular_ghosts || !matrix.popular_first())) {
            stream.copy(slice, x.slices[rank],
                        static_cast<std::size_t>(x.offsets[rank + 1] - x.offsets[rank]) * sizeof(T));
        }
    };
    transport::Gather gather{places, x.offsets, {}, sizeof(T)};
    gather.halo = &message.halo;
    gather.packed = message.packed;
    gather.slice = x.slices[rank];
    gather.packed_list = matrix.shards[rank]->packed[index].list.data();
    gather.large = matrix.hides_entries && index == other_ghosts;
    matrix.channel->gather(worker, stream, meeting, gather, write);
    return slice;
}

/// Brings what the devices need of such an x to each of them, on one of the worker's streams, and returns where the worker's
/// kernel finds its entry 0. The channel is to be settled.
template <class T>
const T* exchange_by_rows(MatrixState<T>& matrix, engine::Worker& worker, engine::Stream& stream,
                          engine::Rendezvous& meeting, const VectorState<T>& x)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    if (!matrix.exchanges) {
        return static_cast<const T*>(x.entry_zero[rank]) + matrix.plan.shards[rank].index_base;
    }
    if (matrix.by_entries) {
        if (matrix.popular_first()) {
            exchange_message(matrix, worker, stream, meeting, x, popular_ghosts);
            matrix.channel->settle(worker, stream, meeting);
        }
        return exchange_message(matrix, worker, stream, meeting, x, other_ghosts);
    }
    matrix.channel->gather(worker, stream, meeting, {x.entry_zero, x.offsets, matrix.x_needed, sizeof(T)}, [] {});
    return static_cast<const T*>(x.entry_zero[rank]) + matrix.plan.shards[rank].index_base;
}

/// Brings x to where the worker's kernel would read it if columns were not numbered anew.
template <class T>
PlacedX<T> place_whole_x(MatrixState<T>& matrix, engine::Worker& worker, engine::Rendezvous& meeting,
                         const Source<T>& x, PhaseProbe* probe)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    engine::Device& device = worker.device();
    const auto mark = [&](const char* phase) {
        if (probe != nullptr) {
            probe->mark(worker, phase);
        }
    };
    if (x.vector && (x.vector->layout == Layout::replicated || !matrix.channel)) {
        // One device, or one memory: the slices lie behind each other, so the first is all of x.
        return {x.vector->slices[x.vector->layout == Layout::replicated ? rank : 0], false};
    }
    if (device.shares_host_memory()) {
        return {x.host, false};
    }
    // Through the matrix's own copy of x.
    T* const all = matrix.shards[rank]->x.data();
    const bool gathered = matrix.channel && (x.vector || !matrix.upload_needed);
    const auto& slices = x.vector ? x.vector->offsets : matrix.x_even;
    const transport::Range own = gathered ? transport::Range{slices[rank], slices[rank + 1]} : matrix.x_needed[rank];
    const auto write = [&] {
        const auto bytes = static_cast<std::size_t>(own.end - own.first) * sizeof(T);
        if (x.vector) {
            worker.stream().copy(all + own.first, x.vector->slices[rank], bytes);
        } else {
            upload_vector(worker, matrix.shards[rank]->streamed.get(), all + own.first, x.host + own.first, bytes);
            mark("x upload");
        }
    };
    if (gathered) {
        matrix.channel->gather(worker, worker.stream(), meeting, {matrix.x_buffers, slices, matrix.x_needed, sizeof(T)},
                               write);
        mark("x exchange");
    } else {
        write();
    }
    return {all, gathered};
}

/// Brings x to where the worker's kernel reads it.
template <class T>
PlacedX<T> place_x(MatrixState<T>& matrix, engine::Worker& worker, engine::Rendezvous& meeting, const Source<T>& x,
                   PhaseProbe* probe)
{
    const auto mark = [&](const char* phase) {
        if (probe != nullptr) {
            probe->mark(worker, phase);
        }
    };
    if (exchanged_by_rows(matrix, x)) {
        const T* const data = exchange_by_rows(matrix, worker, worker.stream(), meeting, *x.vector);
        if (matrix.exchanges) {
            mark("x exchange");
        }
        return {data, matrix.exchanges};
    }
    PlacedX<T> placed = place_whole_x(matrix, worker, meeting, x, probe);
    const auto rank = static_cast<std::size_t>(worker.rank());
    if (matrix.by_entries) {
        const transport::Range own{matrix.x_slices[rank], matrix.x_slices[rank + 1]};
        T* const slice = static_cast<T*>(matrix.local_x[rank]) + own.first;
        worker.stream().copy(slice, placed.data + own.first, static_cast<std::size_t>(own.end - own.first) * sizeof(T));
        kernels::pack(placed.data + matrix.plan.shards[rank].index_base, matrix.shards[rank]->ghosts.data(),
                      matrix.ghosts[rank], slice + (own.end - own.first), worker.context());
        mark("x packing");
        placed.data = slice;
    } else {
        placed.data += matrix.plan.shards[rank].index_base;
    }
    return placed;
}

/// Whether entries are in the order of the matrix's kernel.
template <class T>
bool in_order(const std::shared_ptr<VectorState<T>>& vector)
{
    return vector && vector->order;
}

/// Stretches of the shard's rows that leave for a host y one by one; empty: its operator multiplies all rows at once, or they are few.
template <class T>
std::vector<transport::Range> host_stretches(const Shard<T>& shard)
{
    // What a link carries in 10 us: an event and another kernel cost that.
    constexpr std::int64_t least_bytes = std::int64_t{512} << 10;
    std::vector<transport::Range> stretches;
    const std::int64_t rows = shard.owned.rows;
    const std::int64_t count =
        std::min<std::int64_t>(host_y_stretches, rows * static_cast<std::int64_t>(sizeof(T)) / least_bytes);
    const std::int64_t granule = shard.streamed || count < 2 ? 0 : shard.owned_operator->row_granule();
    if (granule == 0) {
        return stretches;
    }
    for (std::int64_t i = 0; i < count; ++i) {
        stretches.push_back(
            {rows * i / count / granule * granule, i + 1 == count ? rows : rows * (i + 1) / count / granule * granule});
    }
    return stretches;
}

/// The whole shard's product on the worker's stream; that of each stretch of rows by itself if there are any.
template <class T>
void multiply(Shard<T>& shard, engine::Worker& worker, T alpha, const T* x, bool x_in_order, T beta, T* y,
              bool y_in_order, const std::vector<transport::Range>& stretches)
{
    const auto context = worker.context();
    if (shard.streamed) {
        shard.streamed->apply(worker, alpha, x, beta, y, shard.carry_out.data());
        return;
    }
    for (std::size_t i = 0; i < stretches.size(); ++i) {
        shard.owned_operator->apply_rows(stretches[i].first, stretches[i].end, alpha, x, beta, y, context);
        worker.stream().record(*shard.y_done[i]);
    }
    if (x_in_order || y_in_order) {
        shard.owned_operator->apply_in_order(alpha, x, x_in_order, beta, y, y_in_order, context);
    } else if (stretches.empty()) {
        shard.owned_operator->apply(alpha, x, beta, y, context);
    }
    if (shard.carry_operator) {
        shard.carry_operator->apply(alpha, x, T{0}, shard.carry_out.data(), context);
    }
}

/// Brings the rows of a host y there; stretches as multiply() has them. Pageable: returns when they are there.
template <class T>
void download_rows(Shard<T>& shard, engine::Worker& worker, T* host, const T* y,
                   const std::vector<transport::Range>& stretches)
{
    engine::Device& device = worker.device();
    if (shard.streamed) {
        shard.streamed->download(worker, host, y);
        return;
    }
    if (stretches.empty()) {
        device.download(worker.stream(), host, y, static_cast<std::size_t>(shard.owned.rows) * sizeof(T));
        return;
    }
    std::vector<engine::Download> parts;
    for (std::size_t i = 0; i < stretches.size(); ++i) {
        const transport::Range& rows = stretches[i];
        parts.push_back({host + rows.first, y + rows.first, static_cast<std::size_t>(rows.end - rows.first) * sizeof(T),
                         shard.y_done[i].get()});
    }
    engine::Stream& results = worker.side_stream();
    device.download(results, parts);
    results.record(*shard.y_there);
    worker.stream().wait(*shard.y_there);
}

/// The shard's interior as far as its operator can multiply it alone.
template <class T>
transport::Range interior_of(const Shard<T>& shard)
{
    const std::int64_t granule = shard.interior.empty() ? 0 : shard.owned_operator->row_granule();
    if (granule == 0) {
        return {};
    }
    const transport::Range& rows = shard.interior;
    return {(rows.first + granule - 1) / granule * granule,
            rows.end == shard.owned.rows ? rows.end : rows.end / granule * granule};
}

/// The same for an x that is exchanged by rows and where it is: entries of other devices come to their place beside the slice on
/// the worker's side stream, while the worker's stream multiplies what needs none of them: the rows of `interior`, or, if that is
/// empty, the columns of the slice and the popular ghosts, which come first. Other rows follow on the side stream, other
/// columns on the worker's.
template <class T>
void multiply_overlapped(MatrixState<T>& matrix, engine::Worker& worker, engine::Rendezvous& meeting,
                         const transport::Range& interior, T alpha, const VectorState<T>& x, T beta, T* y,
                         PhaseProbe* probe)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    Shard<T>& shard = *matrix.shards[rank];
    auto& product = *shard.owned_operator;
    engine::Stream& stream = worker.stream();
    engine::Stream& side = worker.side_stream();
    const auto mark = [&](const char* phase, engine::Stream& on, std::size_t since) {
        return probe != nullptr ? probe->mark(worker, phase, on, since) : 0;
    };
    const std::size_t begin = mark("", stream, 0);
    const bool popular = interior.empty() && matrix.popular_first();
    if (popular) {
        exchange_message(matrix, worker, stream, meeting, x, popular_ghosts);
        matrix.channel->settle(worker, stream, meeting);
    }
    const std::size_t started = popular ? mark("x exchange", stream, begin) : begin;
    stream.record(*shard.begun);
    side.wait(*shard.begun);
    const T* const x_data = popular ? exchange_message(matrix, worker, side, meeting, x, other_ghosts)
                                    : exchange_by_rows(matrix, worker, side, meeting, x);
    const std::size_t exchanged = mark("x exchange", side, started);
    const auto join = [&] {
        matrix.channel->settle(worker, side, meeting);
        side.record(*shard.exchanged);
        stream.wait(*shard.exchanged);
    };
    const auto carry = [&](engine::Stream& on) {
        if (shard.carry_operator) {
            shard.carry_operator->apply(alpha, x_data, T{0}, shard.carry_out.data(), worker.device().context(on));
        }
    };
    if (interior.empty()) {
        product.apply_early(x_data, worker.context());
        const std::size_t early = mark("first columns", stream, started);
        join();
        product.apply_late(alpha, x_data, beta, y, worker.context());
        carry(stream);
        mark("other columns", stream, early);
    } else {
        const auto side_context = worker.device().context(side);
        product.apply_rows(interior.first, interior.end, alpha, x_data, beta, y, worker.context());
        mark("interior", stream, begin);
        product.apply_rows(0, interior.first, alpha, x_data, beta, y, side_context);
        product.apply_rows(interior.end, shard.owned.rows, alpha, x_data, beta, y, side_context);
        carry(side);
        mark("boundary", side, exchanged);
        join();
    }
    mark("kernel", stream, begin);
}

/// What the devices put their carries into. A host y has its own: its carries are read when the devices are done, while the
/// next apply, to a y on the devices, may be under way already.
template <class T>
T* carries_of(const MatrixState<T>& matrix, bool on_devices)
{
    return static_cast<T*>(matrix.carries->data()) + (on_devices ? std::size_t{0} : matrix.shards.size());
}

/// The steps of apply_on(), from which a streamed part recovers if one of them fails.
template <class T>
void apply_steps(MatrixState<T>& matrix, engine::Worker& worker, engine::Rendezvous& meeting, T alpha,
                 const Source<T>& x, T beta, const Target<T>& y, PhaseProbe* probe, bool of_transpose)
{
    if (!multiplies_by_rows(matrix.plan, of_transpose)) {
        matrix.column_product(of_transpose)->apply(worker, meeting, alpha, x, beta, y, probe);
        return;
    }
    const auto rank = static_cast<std::size_t>(worker.rank());
    engine::Device& device = worker.device();
    engine::Stream& stream = worker.stream();
    Shard<T>& shard = *matrix.shards[rank];
    const auto context = worker.context();
    const bool copy_y = !y.vector && !device.shares_host_memory();
    const auto y_bytes = static_cast<std::size_t>(shard.owned.rows) * sizeof(T);
    const auto stretches = copy_y && !in_order(x.vector) ? host_stretches(shard) : std::vector<transport::Range>{};
    T* const host_rows = y.vector ? nullptr : y.host + shard.part.first_owned_row();

    T* const y_place = copy_y ? shard.y.data() : y.vector ? y.vector->slices[rank] : host_rows;
    const transport::Range interior = interior_of(shard);
    if ((!interior.empty() || begins_with_own_columns(shard)) && y.vector && exchanged_by_rows(matrix, x) &&
        (!matrix.by_entries || has_ghost_room(matrix, *x.vector))) {
        multiply_overlapped(matrix, worker, meeting, interior, alpha, *x.vector, beta, y_place, probe);
    } else {
        const std::size_t started = probe != nullptr ? probe->mark(worker, "") : 0;
        if (shard.streamed) {
            shard.streamed->start(worker, probe);
        }
        const PlacedX<T> x_place = place_x(matrix, worker, meeting, x, probe);
        if (copy_y && beta != T{0}) {
            upload_vector(worker, shard.streamed.get(), y_place, host_rows, y_bytes);
            if (probe != nullptr) {
                probe->mark(worker, "y upload");
            }
        }
        // Pieces are on their way from the start on.
        const std::size_t begin = probe == nullptr || shard.streamed ? started : probe->last(worker);
        multiply(shard, worker, alpha, x_place.data, in_order(x.vector), beta, y_place, in_order(y.vector), stretches);
        if (x_place.gathered) {
            matrix.channel->settle(worker, stream, meeting);
        }
        if (probe != nullptr) {
            probe->mark(worker, shard.streamed ? "stream" : "kernel", stream, begin);
        }
    }

    if (matrix.any_carry) {
        // Rows shared between devices: the owner adds what the devices behind it found, in their order. A host y gets them
        // in finish_host_y().
        const bool on_devices = y.vector != nullptr;
        T* const carries = carries_of(matrix, on_devices);
        if (shard.carry_nnz > 0) {
            stream.copy(carries + rank, shard.carry_out.data(), sizeof(T));
        }
        if (on_devices) {
            matrix.carry_order->publish(worker.rank(), stream, meeting);
            if (matrix.carry_count[rank] > 0) {
                kernels::add_carries(y_place + shard.owned.rows - 1, carries + rank + 1, matrix.carry_count[rank],
                                     context);
            }
            matrix.carry_order->end(worker.rank(), stream);
            matrix.carry_order->settle(worker.rank(), stream, meeting);
        }
    }
    if (copy_y) {
        download_rows(shard, worker, host_rows, y_place, stretches);
    }
    if (probe != nullptr && (copy_y || matrix.any_carry)) {
        probe->mark(worker, "merge");
    }
}

}  // namespace

template <class T>
void apply_on(MatrixState<T>& matrix, engine::Worker& worker, engine::Rendezvous& meeting, T alpha, const Source<T>& x,
              T beta, const Target<T>& y, PhaseProbe* probe, bool of_transpose)
{
    try {
        apply_steps(matrix, worker, meeting, alpha, x, beta, y, probe, of_transpose);
    } catch (...) {
        if (const auto& streamed = matrix.shards[static_cast<std::size_t>(worker.rank())]->streamed) {
            streamed->abandon(worker);
        }
        throw;
    }
}

template <class T>
void finish_host_y(const MatrixState<T>& matrix, T* y, bool of_transpose)
{
    if (!matrix.any_carry || !multiplies_by_rows(matrix.plan, of_transpose)) {
        return;
    }
    const T* const carries = carries_of(matrix, false);
    for (std::size_t owner = 0; owner < matrix.carry_count.size(); ++owner) {
        const int count = matrix.carry_count[owner];
        T& last_row = y[matrix.plan.partition.parts[owner].end_row - 1];
        for (int i = 1; i <= count; ++i) {
            last_row += carries[owner + static_cast<std::size_t>(i)];
        }
    }
}

#define RMSP_INSTANTIATE(T)                                                                               \
    template void apply_on(MatrixState<T>&, engine::Worker&, engine::Rendezvous&, T, const Source<T>&, T, \
                           const Target<T>&, PhaseProbe*, bool);                                          \
    template void finish_host_y(const MatrixState<T>&, T*, bool);
RMSP_INSTANTIATE(float)
RMSP_INSTANTIATE(double)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::detail
