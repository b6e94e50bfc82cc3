#include "runtime/matrix/vector.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include <kernels/steps/ghosts/ghosts.hpp>
#include <kernels/steps/support/support.hpp>
#include <numa/pages.hpp>

#include "core/caller_array.hpp"
#include "runtime/matrix/prepare_kernel.hpp"
#include "runtime/matrix/row_product.hpp"

namespace rmsp {
namespace distributed {

template <class T>
std::shared_ptr<VectorState<T>> make_vector(const std::shared_ptr<RuntimeState>& runtime, Layout layout,
                                            std::int64_t size, const std::vector<std::int64_t>& offsets,
                                            const std::vector<transport::Range>& needed,
                                            const std::vector<std::int64_t>& ghosts)
{
    runtime->require_live();
    const auto devices = static_cast<std::size_t>(runtime->devices());
    auto vector = std::make_shared<VectorState<T>>(devices);
    vector->runtime = runtime;
    vector->layout = layout;
    vector->size = size;
    vector->offsets = offsets;
    vector->slices.resize(devices);
    vector->held.resize(devices);
    vector->entry_zero.resize(devices);
    const bool shared = runtime->shared_memory();
    if (!shared) {
        vector->ghost_room = ghosts;
    }
    vector->ghost_room.resize(devices);
    // On GPUs from a whole line on, so that an entry is aligned alike on all devices.
    constexpr std::int64_t line = 32;
    std::vector<std::int64_t> entries(devices, 0);
    for (std::size_t rank = 0; rank < devices; ++rank) {
        transport::Range held{0, size};
        if (shared) {
            entries[rank] = rank == 0 ? size : 0;
            continue;
        }
        if (layout == Layout::rows) {
            held = {offsets[rank], offsets[rank + 1]};
            if (!needed.empty()) {
                held = hull(held, needed[rank]);
            }
        }
        vector->held[rank] = held;
        entries[rank] = held.end - held.first / line * line + vector->ghost_room[rank];
    }
    std::vector<std::int64_t> bytes;
    for (const std::int64_t n : entries) {
        bytes.push_back(n * static_cast<std::int64_t>(sizeof(T)));
    }
    const engine::Placing placing(runtime->admit("the vector", bytes));
    const bool pooled = runtime->peers_reach_pools();
    runtime
        ->submit(
            [&](engine::Worker& worker, engine::Rendezvous& meeting) {
                const auto rank = static_cast<std::size_t>(worker.rank());
                // Memory that peers reach takes long to get and to free, but in the pool.
                kernels::Memory& memory = pooled ? *worker.context().memory : worker.device();
                vector->storage[rank] = kernels::DeviceArray<T>(memory, static_cast<std::size_t>(entries[rank]));
                if (!shared) {
                    const std::int64_t first = layout == Layout::rows ? vector->offsets[rank] : 0;
                    const std::int64_t begin = vector->held[rank].first / line * line;
                    T* const data = vector->storage[rank].data();
                    vector->slices[rank] = data + (first - begin);
                    // An address to add entry numbers to, which may lie before the allocation.
                    vector->entry_zero[rank] = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(data) -
                                                                       static_cast<std::uintptr_t>(begin) * sizeof(T));
                    return;
                }
                meeting.arrive_and_wait();
                T* const begin = vector->storage[0].data();
                vector->slices[rank] = layout == Layout::replicated ? begin : begin + vector->offsets[rank];
                if (layout == Layout::rows) {
                    const std::int64_t own = vector->offsets[rank + 1] - vector->offsets[rank];
                    numa::prefer_node(vector->slices[rank], static_cast<std::size_t>(own) * sizeof(T),
                                      worker.device().info().numa_node);
                }
            },
            {}, vector->terms())
        .get();
    return vector;
}

template <class T>
std::shared_ptr<VectorState<T>> make_vector(const MatrixState<T>& matrix, const plan::Side& side, Layout layout)
{
    if (layout == Layout::replicated) {
        return make_vector<T>(matrix.runtime, layout, side.size(),
                              plan::even_slices(side.size(), matrix.runtime->devices()));
    }
    const bool square = matrix.plan.rows == matrix.plan.cols;
    if (const RowProduct<T>* const rows = row_product(matrix); rows != nullptr && rows->by_entries()) {
        // The ghosts lie right behind the slice, so there is nothing else to hold.
        return make_vector<T>(matrix.runtime, layout, side.size(), side.slices, {},
                              square || &side == &matrix.columns ? rows->ghosts() : std::vector<std::int64_t>{});
    }
    std::vector<transport::Range> needed = side.touched;
    if (square) {
        // The y of one product is often the x of the next, also of the transposed one.
        for (std::size_t i = 0; i < needed.size(); ++i) {
            needed[i] = hull(matrix.rows.touched[i], matrix.columns.touched[i]);
        }
    }
    return make_vector<T>(matrix.runtime, layout, side.size(), side.slices, needed);
}

template <class T>
std::vector<std::int64_t> vector_bytes(const MatrixState<T>& matrix, std::int64_t vectors)
{
    const std::vector<std::int64_t>& slices = x_side(matrix, true).slices;
    std::vector<std::int64_t> bytes(slices.size() - 1, 0);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        // Host devices share what the first one has.
        const std::size_t holder = matrix.runtime->shared_memory() ? 0 : i;
        bytes[holder] += vectors * (slices[i + 1] - slices[i]) * static_cast<std::int64_t>(sizeof(T));
    }
    return bytes;
}

template <class T>
std::shared_ptr<VectorState<T>> make_shared_x(const MatrixState<T>& a, const MatrixState<T>& b)
{
    const std::vector<std::int64_t>& slices = x_side(a, false).slices;
    std::vector<transport::Range> needed;
    std::vector<std::int64_t> ghosts(slices.size() - 1);
    for (std::size_t i = 0; i + 1 < slices.size(); ++i) {
        needed.push_back({slices[i], slices[i + 1]});
        for (const MatrixState<T>* const matrix : {&a, &b}) {
            const RowProduct<T>* const rows = row_product(*matrix);
            if (rows != nullptr && rows->by_entries()) {
                ghosts[i] = std::max(ghosts[i], rows->ghosts()[i]);
            } else {
                needed[i] = hull(needed[i], x_side(*matrix, false).touched[i]);
            }
        }
    }
    return make_vector<T>(a.runtime, Layout::rows, slices.back(), slices, needed, ghosts);
}

template <class T>
std::shared_ptr<VectorState<T>> make_vector(const std::shared_ptr<MatrixState<T>>& matrix, const plan::Side& side,
                                            Layout layout, Order order)
{
    auto vector = make_vector(*matrix, side, layout);
    if (order == Order::matrix || layout != Layout::rows) {
        return vector;
    }
    // An operator that has an order holds the whole matrix, so it is the first device's. On its thread, since it may be
    // a race, which ends here: there is no order before that.
    matrix->runtime
        ->submit([&](engine::Worker& worker, engine::Rendezvous&) {
            const RowProduct<T>* const rows = row_product(*matrix);
            if (worker.rank() != 0 || rows == nullptr || !rows->shard(0).owned_operator) {
                return;
            }
            RowShard<T>& own = rows->shard(0);
            end_race_in_order(*matrix->shards[0], own);
            if (const kernels::RowOrder* const own_order = own.owned_operator->order()) {
                vector->order = VectorOrder{*own_order, matrix};
            }
        })
        .get();
    return vector;
}

#define RMSP_INSTANTIATE(T)                                                                                         \
    template std::shared_ptr<VectorState<T>> make_vector(                                                           \
        const std::shared_ptr<RuntimeState>&, Layout, std::int64_t, const std::vector<std::int64_t>&,               \
        const std::vector<transport::Range>&, const std::vector<std::int64_t>&);                                    \
    template std::shared_ptr<VectorState<T>> make_vector(const MatrixState<T>&, const plan::Side&, Layout);         \
    template std::shared_ptr<VectorState<T>> make_vector(const std::shared_ptr<MatrixState<T>>&, const plan::Side&, \
                                                         Layout, Order);                                            \
    template std::shared_ptr<VectorState<T>> make_shared_x(const MatrixState<T>&, const MatrixState<T>&);           \
    template std::vector<std::int64_t> vector_bytes(const MatrixState<T>&, std::int64_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

namespace {

/// What a worker fills or copies of a vector: [first, first + count) at `place`.
template <class T>
struct HeldPart {
    T* place;
    std::int64_t first;
    std::int64_t count;
};

template <class T>
HeldPart<T> held_part_of(const VectorState<T>& vector, std::size_t rank, bool shared)
{
    if (vector.layout == Layout::replicated && !shared) {
        return {vector.slices[rank], 0, vector.size};
    }
    const std::int64_t first = vector.offsets[rank];
    T* const place = vector.layout == Layout::replicated ? vector.slices[rank] + first : vector.slices[rank];
    return {place, first, vector.offsets[rank + 1] - first};
}

}  // namespace

template <class T>
void upload_slice(const VectorState<T>& vector, engine::Worker& worker, const T* entries)
{
    const auto part = held_part_of(vector, static_cast<std::size_t>(worker.rank()), vector.runtime->shared_memory());
    const auto copy_to = [&](T* place) {
        worker.device().upload(worker.stream(), place, entries + part.first,
                               static_cast<std::size_t>(part.count) * sizeof(T));
    };
    if (!vector.order) {
        copy_to(part.place);
        return;
    }
    const kernels::DeviceArray<T> staged(worker.device(), static_cast<std::size_t>(part.count));
    copy_to(staged.data());
    kernels::pack(staged.data(), vector.order->rows.row, part.count, part.place, worker.context());
}

template <class T>
void download_slice(const VectorState<T>& vector, engine::Worker& worker, T* entries)
{
    // Each device brings its slice, also of a replicated vector.
    const auto rank = static_cast<std::size_t>(worker.rank());
    const std::int64_t first = vector.offsets[rank];
    const std::int64_t count = vector.offsets[rank + 1] - first;
    const T* from = vector.layout == Layout::replicated ? vector.slices[rank] + first : vector.slices[rank];
    kernels::DeviceArray<T> ordered;
    if (vector.order) {
        ordered = kernels::DeviceArray<T>(worker.device(), static_cast<std::size_t>(count));
        kernels::pack(from, vector.order->rows.place, count, ordered.data(), worker.context());
        from = ordered.data();
    }
    worker.device().download(worker.stream(), entries + first, from, static_cast<std::size_t>(count) * sizeof(T));
}

template <class T>
void upload_vector(const std::shared_ptr<VectorState<T>>& vector, const T* entries)
{
    vector->runtime
        ->submit([&](engine::Worker& worker, engine::Rendezvous&) { upload_slice(*vector, worker, entries); }, {},
                 vector->terms(true))
        .get();
}

template <class T>
void download_vector(const std::shared_ptr<VectorState<T>>& vector, T* entries)
{
    vector->runtime
        ->submit([&](engine::Worker& worker, engine::Rendezvous&) { download_slice(*vector, worker, entries); }, {},
                 vector->terms(true))
        .get();
}

#define RMSP_INSTANTIATE(T)                                                        \
    template void upload_slice(const VectorState<T>&, engine::Worker&, const T*);  \
    template void download_slice(const VectorState<T>&, engine::Worker&, T*);      \
    template void upload_vector(const std::shared_ptr<VectorState<T>>&, const T*); \
    template void download_vector(const std::shared_ptr<VectorState<T>>&, T*);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace distributed

template <class T>
std::int64_t DistributedVector<T>::size() const
{
    return detail::checked(state_)->size;
}

template <class T>
Layout DistributedVector<T>::layout() const
{
    return detail::checked(state_)->layout;
}

template <class T>
Order DistributedVector<T>::order() const
{
    return detail::checked(state_)->order ? Order::kernel : Order::matrix;
}

template <class T>
std::span<const std::int64_t> DistributedVector<T>::offsets() const
{
    return detail::checked(state_)->offsets;
}

template <class T>
std::span<T> DistributedVector<T>::local(int device)
{
    const auto& vector = *detail::checked(state_);
    const int devices = vector.runtime->devices();
    if (device < 0 || device >= devices) {
        throw Error(ErrorCode::usage, fmt::format("the vector is on devices 0 to {}, not on {}", devices - 1, device));
    }
    const auto rank = static_cast<std::size_t>(device);
    const std::int64_t count =
        vector.layout == Layout::replicated ? vector.size : vector.offsets[rank + 1] - vector.offsets[rank];
    return {vector.slices[rank], static_cast<std::size_t>(count)};
}

template <class T>
std::span<const T> DistributedVector<T>::local(int device) const
{
    return DistributedVector(*this).local(device);
}

template <class T>
void DistributedVector<T>::upload(const T* entries)
{
    core::require_array("entries", entries, size());
    distributed::upload_vector(state_, entries);
}

template <class T>
void DistributedVector<T>::download(T* entries) const
{
    core::require_array("entries", entries, size());
    distributed::download_vector(state_, entries);
}

template <class T>
void DistributedVector<T>::fill(T value)
{
    const auto vector = detail::checked(state_);
    const bool shared = vector->runtime->shared_memory();
    vector->runtime->submit(
        [vector, value, shared](engine::Worker& worker, engine::Rendezvous&) {
            const auto part = distributed::held_part_of(*vector, static_cast<std::size_t>(worker.rank()), shared);
            kernels::fill(part.place, part.count, value, worker.launching_context());
        },
        {}, vector->terms_of_entries(1));
}

#define RMSP_INSTANTIATE(T) template class DistributedVector<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp
