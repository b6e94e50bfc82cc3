#include "runtime/matrix/row_product.hpp"

#include <algorithm>

#include <kernels/steps/ghosts/ghosts.hpp>
#include <kernels/steps/support/support.hpp>

#include "runtime/plan/rank_kernels.hpp"

namespace rmsp::distributed {
namespace {

/// Whether entries are in the order of the matrix's kernel.
template <class T>
bool in_order(const std::shared_ptr<VectorState<T>>& vector)
{
    return vector && vector->order;
}

/// Stretches of the shard's rows that leave for a host y one by one; empty: its operator multiplies all rows at once,
/// or they are few.
template <class T>
std::vector<transport::Range> host_stretches(const Shard<T>& shard, const RowShard<T>& own)
{
    // What a link carries in the time that one more event and kernel cost.
    constexpr std::int64_t least_bytes = std::int64_t{512} << 10;
    std::vector<transport::Range> stretches;
    const std::int64_t rows = shard.owned.rows;
    const std::int64_t count =
        std::min<std::int64_t>(host_y_stretches, rows * static_cast<std::int64_t>(sizeof(T)) / least_bytes);
    const std::int64_t granule = shard.streamed || count < 2 ? 0 : own.owned_operator->row_granule();
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
/// `alone`: nothing else of this apply is queued behind it.
template <class T>
void multiply(Shard<T>& shard, RowShard<T>& own, engine::Worker& worker, const engine::Rendezvous& meeting, T alpha,
              const T* x, bool x_in_order, T beta, T* y, bool y_in_order,
              const std::vector<transport::Range>& stretches, bool alone)
{
    if (alone && !shard.streamed && !x_in_order && !y_in_order && own.owned_operator->only_launches()) {
        own.owned_operator->apply(alpha, x, beta, y, worker.launching_context());
        return;
    }
    const auto context = worker.context();
    if (shard.streamed) {
        shard.streamed->apply(worker, meeting, alpha, x, beta, y, own.carry_out.data());
        return;
    }
    for (std::size_t i = 0; i < stretches.size(); ++i) {
        own.owned_operator->apply_rows(stretches[i].first, stretches[i].end, alpha, x, beta, y, context);
        worker.stream().record(*own.y_done[i]);
    }
    if (x_in_order || y_in_order) {
        own.owned_operator->apply_in_order(alpha, x, x_in_order, beta, y, y_in_order, context);
    } else if (stretches.empty()) {
        own.owned_operator->apply(alpha, x, beta, y, context);
    }
    if (own.carry_operator) {
        own.carry_operator->apply(alpha, x, T{0}, own.carry_out.data(), context);
    }
}

/// Brings the rows of a host y there; stretches as multiply() has them. Pageable: returns when they are there.
template <class T>
void download_rows(Shard<T>& shard, RowShard<T>& own, engine::Worker& worker, T* host, const T* y,
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
                         own.y_done[i].get()});
    }
    engine::Stream& results = worker.side_stream();
    device.download(results, parts);
    results.record(*own.y_there);
    worker.stream().wait(*own.y_there);
}

/// The shard's interior as far as its operator can multiply it alone.
template <class T>
transport::Range interior_of(const Shard<T>& shard, const RowShard<T>& own)
{
    const std::int64_t granule = own.interior.empty() ? 0 : own.owned_operator->row_granule();
    if (granule == 0) {
        return {};
    }
    const transport::Range& rows = own.interior;
    return {(rows.first + granule - 1) / granule * granule,
            rows.end == shard.owned.rows ? rows.end : rows.end / granule * granule};
}

}  // namespace

template <class T>
T* RowProduct<T>::carries_of(bool on_devices) const
{
    return static_cast<T*>(carries_.data()) + (on_devices ? std::size_t{0} : shards_.size());
}

template <class T>
void RowProduct<T>::multiply_overlapped(engine::Worker& worker, engine::Rendezvous& meeting,
                                        const transport::Range& interior, T alpha, const VectorState<T>& x, T beta,
                                        T* y, PhaseProbe* probe)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    Shard<T>& shard = *matrix_.shards[rank];
    RowShard<T>& own = *shards_[rank];
    auto& product = *own.owned_operator;
    engine::Stream& stream = worker.stream();
    engine::Stream& side = worker.side_stream();
    const auto mark = [&](const char* phase, engine::Stream& on, std::size_t since) {
        return probe != nullptr ? probe->mark(worker, phase, on, since) : 0;
    };
    const std::size_t begin = mark("", stream, 0);
    const bool popular = interior.empty() && popular_first();
    if (popular) {
        exchange_message(worker, stream, meeting, x, popular_ghosts);
        channel_->settle(worker, stream, meeting);
    }
    const std::size_t started = popular ? mark("x exchange", stream, begin) : begin;
    stream.record(*own.begun);
    side.wait(*own.begun);
    const T* const x_data =
        popular ? exchange_message(worker, side, meeting, x, other_ghosts) : exchange_by_rows(worker, side, meeting, x);
    const std::size_t exchanged = mark("x exchange", side, started);
    const auto join = [&] {
        channel_->settle(worker, side, meeting);
        side.record(*own.exchanged);
        stream.wait(*own.exchanged);
    };
    const auto carry = [&](engine::Stream& on) {
        if (own.carry_operator) {
            own.carry_operator->apply(alpha, x_data, T{0}, own.carry_out.data(), worker.device().context(on));
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

template <class T>
void RowProduct<T>::apply(engine::Worker& worker, engine::Rendezvous& meeting, T alpha, const Source<T>& x, T beta,
                          const Target<T>& y, PhaseProbe* probe)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    engine::Device& device = worker.device();
    Shard<T>& shard = *matrix_.shards[rank];
    RowShard<T>& own = *shards_[rank];
    const bool copy_y = !y.vector && !device.shares_host_memory();
    const auto y_bytes = static_cast<std::size_t>(shard.owned.rows) * sizeof(T);
    const auto stretches = copy_y && !in_order(x.vector) ? host_stretches(shard, own) : std::vector<transport::Range>{};
    T* const host_rows = y.vector ? nullptr : y.host + shard.part.first_owned_row();

    if (copy_y && own.y.size() == 0) {
        own.y = kernels::DeviceArray<T>(*worker.context().memory, static_cast<std::size_t>(shard.owned.rows));
    }
    T* const y_place = copy_y ? own.y.data() : y.vector ? y.vector->slices[rank] : host_rows;
    const transport::Range interior = interior_of(shard, own);
    if ((!interior.empty() || begins_with_own_columns(shard, own)) && y.vector && exchanged_by_rows(x) &&
        (!by_entries_ || has_ghost_room(*x.vector))) {
        multiply_overlapped(worker, meeting, interior, alpha, *x.vector, beta, y_place, probe);
    } else {
        const std::size_t started = probe != nullptr ? probe->mark(worker, "") : 0;
        if (shard.streamed) {
            shard.streamed->start(worker, probe);
        }
        const PlacedX x_place = place_x(worker, meeting, x, probe);
        if (copy_y && beta != T{0}) {
            upload_vector(worker, shard.streamed.get(), y_place, host_rows, y_bytes);
            if (probe != nullptr) {
                probe->mark(worker, "y upload");
            }
        }
        // Pieces are on their way from the start on.
        const std::size_t begin = probe == nullptr || shard.streamed ? started : probe->last(worker);
        multiply(shard, own, worker, meeting, alpha, x_place.data, in_order(x.vector), beta, y_place,
                 in_order(y.vector), stretches, !x_place.gathered && probe == nullptr && !any_carry_ && !copy_y);
        if (x_place.gathered) {
            channel_->settle(worker, worker.stream(), meeting);
        }
        if (probe != nullptr) {
            probe->mark(worker, shard.streamed ? "stream" : "kernel", worker.stream(), begin);
        }
    }

    if (any_carry_) {
        // Rows shared between devices: the owner adds what the devices behind it found, in their order. A host y gets
        // them in finish_host_y().
        const bool on_devices = y.vector != nullptr;
        engine::Stream& stream = worker.stream();
        T* const carries = carries_of(on_devices);
        if (shard.carry_nnz > 0) {
            stream.copy(carries + rank, own.carry_out.data(), sizeof(T));
        }
        if (on_devices) {
            carry_order_.publish(worker.rank(), stream, meeting);
            if (carry_count_[rank] > 0) {
                kernels::add_carries(y_place + shard.owned.rows - 1, carries + rank + 1, carry_count_[rank],
                                     worker.context());
            }
            carry_order_.end(worker.rank(), stream);
            carry_order_.settle(worker.rank(), stream, meeting);
        }
    }
    if (copy_y) {
        download_rows(shard, own, worker, host_rows, y_place, stretches);
    }
    if (probe != nullptr && (copy_y || any_carry_)) {
        probe->mark(worker, "merge");
    }
}

template <class T>
std::int64_t RowProduct<T>::leave_sums(int rank, double* sums)
{
    Shard<T>& shard = *matrix_.shards[static_cast<std::size_t>(rank)];
    RowShard<T>& own = *shards_[static_cast<std::size_t>(rank)];
    // A row that several devices share is complete only once their carries are added.
    if (any_carry_ || shard.streamed || !own.owned_operator || own.owned_operator->order() != nullptr) {
        return 0;
    }
    own.owned_operator->leave_sums(sums);
    return own.owned_operator->sums();
}

template <class T>
void RowProduct<T>::finish_host_y(T* y) const
{
    if (!any_carry_) {
        return;
    }
    const T* const carries = carries_of(false);
    for (std::size_t owner = 0; owner < carry_count_.size(); ++owner) {
        const int count = carry_count_[owner];
        T& last_row = y[matrix_.plan.partition.parts[owner].end_row - 1];
        for (int i = 1; i <= count; ++i) {
            last_row += carries[owner + static_cast<std::size_t>(i)];
        }
    }
}

template <class T>
std::int64_t RowProduct<T>::apply_bytes(std::size_t rank) const
{
    const RowShard<T>& own = shard(rank);
    const int winner = own.race ? own.race->outcome->winner.load(std::memory_order_acquire) : -1;
    return (winner >= 0 ? own.race->apply_bytes[static_cast<std::size_t>(winner)]
                        : matrix_.plan.shards[rank].apply_bytes) +
           own.more_read;
}

template <class T>
void RowProduct<T>::note_races(Plan& plan) const
{
    for (std::size_t i = 0; i < plan.shards.size(); ++i) {
        ShardPlan& shard = plan.shards[i];
        const RowShard<T>& own = this->shard(i);
        const auto* const race = own.race ? &*own.race : nullptr;
        const int winner = race != nullptr ? race->outcome->winner.load(std::memory_order_acquire) : -1;
        if (winner >= 0) {
            for (std::size_t runner = 0; runner < race->outcome->seconds.size(); ++runner) {
                shard.candidates[runner].measured_seconds = race->outcome->seconds[runner];
            }
            std::rotate(shard.candidates.begin(), shard.candidates.begin() + winner,
                        shard.candidates.begin() + winner + 1);
            shard.kernel = shard.candidates.front().kernel;
            shard.kernel_reason = race->outcome->in_order ? won_race_in_order : won_race;
            shard.break_even_applies = plan::break_even(shard.candidates, shard.kernel);
        }
        shard.apply_bytes = apply_bytes(i);
        shard.matrix_bytes += own.more_kept;
    }
}

#define RMSP_INSTANTIATE(T) template class RowProduct<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
