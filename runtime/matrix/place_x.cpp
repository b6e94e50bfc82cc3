#include "runtime/matrix/row_product.hpp"

#include <algorithm>
#include <functional>

#include <kernels/steps/ghosts/ghosts.hpp>

namespace rmsp::distributed {
template <class T>
bool RowProduct<T>::exchanged_by_rows(const Source<T>& x) const
{
    if (!x.vector || x.vector->layout != Layout::rows || !channel_) {
        return false;
    }
    return by_entries_ || !exchanges_ ? x.vector->offsets == x_slices_ : x.vector->holds(x_needed_);
}

template <class T>
bool RowProduct<T>::has_ghost_room(const VectorState<T>& x) const
{
    return std::equal(ghosts_.begin(), ghosts_.end(), x.ghost_room.begin(), x.ghost_room.end(), std::less_equal<>());
}

template <class T>
const T* RowProduct<T>::exchange_message(engine::Worker& worker, engine::Stream& stream, engine::Rendezvous& meeting,
                                         const VectorState<T>& x, std::size_t index)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const GhostMessage& message = messages_[index];
    const bool room = has_ghost_room(x);
    const auto& places = room ? x.entry_zero : local_x_;
    T* const slice = static_cast<T*>(places[rank]) + x.offsets[rank];
    const auto write = [&] {
        if (!room && (index == popular_ghosts || !popular_first())) {
            stream.copy(slice, x.slices[rank],
                        static_cast<std::size_t>(x.offsets[rank + 1] - x.offsets[rank]) * sizeof(T));
        }
    };
    transport::Gather gather{places, x.offsets, {}, sizeof(T)};
    gather.halo = &message.halo;
    gather.packed = message.packed;
    gather.slice = x.slices[rank];
    gather.packed_list = shards_[rank]->packed[index].list.data();
    gather.large = hides_entries_ && index == other_ghosts;
    channel_->gather(worker, stream, meeting, gather, write);
    return slice;
}

template <class T>
const T* RowProduct<T>::exchange_by_rows(engine::Worker& worker, engine::Stream& stream, engine::Rendezvous& meeting,
                                         const VectorState<T>& x)
{
    if (!exchanges_) {
        return entry_zero(worker, x);
    }
    if (by_entries_) {
        if (popular_first()) {
            exchange_message(worker, stream, meeting, x, popular_ghosts);
            channel_->settle(worker, stream, meeting);
        }
        return exchange_message(worker, stream, meeting, x, other_ghosts);
    }
    channel_->gather(worker, stream, meeting, {x.entry_zero, x.offsets, x_needed_, sizeof(T)}, [] {});
    return entry_zero(worker, x);
}

template <class T>
typename RowProduct<T>::PlacedX RowProduct<T>::place_whole_x(engine::Worker& worker, engine::Rendezvous& meeting,
                                                             const Source<T>& x, PhaseProbe* probe)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    engine::Device& device = worker.device();
    const auto mark = [&](const char* phase) {
        if (probe != nullptr) {
            probe->mark(worker, phase);
        }
    };
    if (x.vector && (x.vector->layout == Layout::replicated || !channel_)) {
        // One device, or one memory: the slices lie behind each other, so the first is all of x.
        return {x.vector->slices[x.vector->layout == Layout::replicated ? rank : 0], false};
    }
    if (device.shares_host_memory()) {
        return {x.host, false};
    }
    // Through the matrix's own copy of x.
    kernels::DeviceArray<T>& room = shards_[rank]->x;
    if (matrix_.origin.devices) {
        if (room.size() == 0) {
            room = kernels::DeviceArray<T>(device, static_cast<std::size_t>(matrix_.columns.size()));
            x_buffers_[rank] = room.data();
        }
        meeting.arrive_and_wait();  // the others gather from there
    }
    T* const all = room.data();
    const bool gathered = channel_ && (x.vector || !upload_needed_);
    const auto& slices = x.vector ? x.vector->offsets : x_even_;
    const transport::Range own = gathered ? transport::Range{slices[rank], slices[rank + 1]} : x_needed_[rank];
    const auto write = [&] {
        const auto bytes = static_cast<std::size_t>(own.end - own.first) * sizeof(T);
        if (x.vector) {
            worker.stream().copy(all + own.first, x.vector->slices[rank], bytes);
        } else {
            upload_vector(worker, matrix_.shards[rank]->streamed.get(), all + own.first, x.host + own.first, bytes);
            mark("x upload");
        }
    };
    if (gathered) {
        channel_->gather(worker, worker.stream(), meeting, {x_buffers_, slices, x_needed_, sizeof(T)}, write);
        mark("x exchange");
    } else {
        write();
    }
    return {all, gathered};
}

template <class T>
typename RowProduct<T>::PlacedX RowProduct<T>::place_x(engine::Worker& worker, engine::Rendezvous& meeting,
                                                       const Source<T>& x, PhaseProbe* probe)
{
    const auto mark = [&](const char* phase) {
        if (probe != nullptr) {
            probe->mark(worker, phase);
        }
    };
    if (exchanged_by_rows(x)) {
        if (!exchanges_) {
            return {entry_zero(worker, *x.vector), false};
        }
        const T* const data = exchange_by_rows(worker, worker.stream(), meeting, *x.vector);
        mark("x exchange");
        return {data, true};
    }
    PlacedX placed = place_whole_x(worker, meeting, x, probe);
    const auto rank = static_cast<std::size_t>(worker.rank());
    if (by_entries_) {
        const transport::Range own{x_slices_[rank], x_slices_[rank + 1]};
        T* const slice = static_cast<T*>(local_x_[rank]) + own.first;
        worker.stream().copy(slice, placed.data + own.first, static_cast<std::size_t>(own.end - own.first) * sizeof(T));
        kernels::pack(placed.data + matrix_.plan.shards[rank].index_base, shards_[rank]->ghosts.data(), ghosts_[rank],
                      slice + (own.end - own.first), worker.context());
        mark("x packing");
        placed.data = slice;
    } else {
        placed.data += matrix_.plan.shards[rank].index_base;
    }
    return placed;
}

#define RMSP_INSTANTIATE(T)                                                                                  \
    template bool RowProduct<T>::exchanged_by_rows(const Source<T>&) const;                                  \
    template bool RowProduct<T>::has_ghost_room(const VectorState<T>&) const;                                \
    template const T* RowProduct<T>::exchange_message(engine::Worker&, engine::Stream&, engine::Rendezvous&, \
                                                      const VectorState<T>&, std::size_t);                   \
    template const T* RowProduct<T>::exchange_by_rows(engine::Worker&, engine::Stream&, engine::Rendezvous&, \
                                                      const VectorState<T>&);                                \
    template typename RowProduct<T>::PlacedX RowProduct<T>::place_x(engine::Worker&, engine::Rendezvous&,    \
                                                                    const Source<T>&, PhaseProbe*);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
