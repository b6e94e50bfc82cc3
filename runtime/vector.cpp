#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include <kernels/support/support.hpp>

#include "runtime/state.hpp"

namespace rmsp {
namespace detail {

template <class T>
std::shared_ptr<VectorState<T>> make_vector(const std::shared_ptr<RuntimeState>& runtime, Layout layout,
                                            std::int64_t size, std::vector<std::int64_t> offsets,
                                            const std::vector<runtime::Range>& needed,
                                            const std::vector<std::int64_t>& ghosts)
{
    runtime->require_live();
    const auto devices = static_cast<std::size_t>(runtime->devices());
    auto vector = std::make_shared<VectorState<T>>();
    vector->runtime = runtime;
    vector->layout = layout;
    vector->size = size;
    vector->offsets = std::move(offsets);
    vector->storage.resize(devices);
    vector->slices.resize(devices);
    vector->held.resize(devices);
    vector->entry_zero.resize(devices);
    vector->ghost_room = ghosts;
    vector->ghost_room.resize(devices);
    const bool shared = runtime->shared_memory();
    runtime
        ->submit([&](runtime::Worker& worker, runtime::Rendezvous& meeting) {
            const auto rank = static_cast<std::size_t>(worker.rank());
            if (!shared) {
                runtime::Range held{0, size};
                std::int64_t first = 0;
                if (layout == Layout::rows) {
                    first = vector->offsets[rank];
                    held = {first, vector->offsets[rank + 1]};
                    if (!needed.empty() && !needed[rank].empty()) {
                        held = held.empty() ? needed[rank]
                                            : runtime::Range{std::min(held.first, needed[rank].first),
                                                             std::max(held.end, needed[rank].end)};
                    }
                }
                // From a whole line on, so that an entry is aligned alike on all devices.
                constexpr std::int64_t line = 32;
                const std::int64_t begin = held.first / line * line;
                vector->held[rank] = held;
                vector->storage[rank] = kernels::DeviceArray<T>(
                    worker.device(), static_cast<std::size_t>(held.end - begin + vector->ghost_room[rank]));
                T* const data = vector->storage[rank].data();
                vector->slices[rank] = data + (first - begin);
                // An address to add entry numbers to, which may lie before the allocation.
                vector->entry_zero[rank] = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(data) -
                                                                   static_cast<std::uintptr_t>(begin) * sizeof(T));
                return;
            }
            if (rank == 0) {
                vector->storage[0] = kernels::DeviceArray<T>(worker.device(), static_cast<std::size_t>(size));
            }
            meeting.arrive_and_wait();
            T* const begin = vector->storage[0].data();
            vector->slices[rank] = layout == Layout::replicated ? begin : begin + vector->offsets[rank];
        })
        .get();
    return vector;
}

template <class T>
std::shared_ptr<VectorState<T>> make_x_for(const MatrixState<T>& matrix, Layout layout)
{
    const bool by_rows = layout == Layout::rows;
    // The ghosts lie right behind the slice, so there is nothing else to hold.
    const bool ranges = by_rows && !matrix.by_entries;
    return make_vector<T>(matrix.runtime, layout, matrix.plan.cols, by_rows ? matrix.x_slices : matrix.x_even,
                          ranges ? matrix.x_needed : std::vector<runtime::Range>{},
                          by_rows ? matrix.ghosts : std::vector<std::int64_t>{});
}

template <class T>
std::shared_ptr<VectorState<T>> make_y_for(const MatrixState<T>& matrix)
{
    if (matrix.plan.rows == matrix.plan.cols) {
        return make_x_for(matrix, Layout::rows);
    }
    return make_vector<T>(matrix.runtime, Layout::rows, matrix.plan.rows, matrix.row_slices);
}

#define RMSP_INSTANTIATE(T)                                                                    \
    template std::shared_ptr<VectorState<T>> make_vector(                                      \
        const std::shared_ptr<RuntimeState>&, Layout, std::int64_t, std::vector<std::int64_t>, \
        const std::vector<runtime::Range>&, const std::vector<std::int64_t>&);                 \
    template std::shared_ptr<VectorState<T>> make_x_for(const MatrixState<T>&, Layout);        \
    template std::shared_ptr<VectorState<T>> make_y_for(const MatrixState<T>&);
RMSP_INSTANTIATE(float)
RMSP_INSTANTIATE(double)
#undef RMSP_INSTANTIATE

namespace {

template <class T>
const std::shared_ptr<VectorState<T>>& checked(const std::shared_ptr<VectorState<T>>& state)
{
    if (!state) {
        throw Error(ErrorCode::usage, "this DistributedVector is empty; make one with make_x() or make_y()");
    }
    return state;
}

/// What a worker fills or copies of a vector: [first, first + count) at `place`.
template <class T>
struct Part {
    T* place;
    std::int64_t first;
    std::int64_t count;
};

template <class T>
Part<T> part_of(const VectorState<T>& vector, std::size_t rank, bool shared)
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
void upload_vector(const std::shared_ptr<VectorState<T>>& vector, const T* host)
{
    const bool shared = vector->runtime->shared_memory();
    vector->runtime
        ->submit(
            [&](runtime::Worker& worker, runtime::Rendezvous&) {
                const auto part = part_of(*vector, static_cast<std::size_t>(worker.rank()), shared);
                worker.device().upload(worker.stream(), part.place, host + part.first,
                                       static_cast<std::size_t>(part.count) * sizeof(T));
            },
            {}, true)
        .get();
}

template <class T>
void download_vector(const std::shared_ptr<VectorState<T>>& vector, T* host)
{
    vector->runtime
        ->submit(
            [&](runtime::Worker& worker, runtime::Rendezvous&) {
                // Each device brings its slice, also of a replicated vector.
                const auto rank = static_cast<std::size_t>(worker.rank());
                const std::int64_t first = vector->offsets[rank];
                const T* const from =
                    vector->layout == Layout::replicated ? vector->slices[rank] + first : vector->slices[rank];
                worker.device().download(worker.stream(), host + first, from,
                                         static_cast<std::size_t>(vector->offsets[rank + 1] - first) * sizeof(T));
            },
            {}, true)
        .get();
}

template void upload_vector(const std::shared_ptr<VectorState<float>>&, const float*);
template void upload_vector(const std::shared_ptr<VectorState<double>>&, const double*);
template void download_vector(const std::shared_ptr<VectorState<float>>&, float*);
template void download_vector(const std::shared_ptr<VectorState<double>>&, double*);

}  // namespace detail

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
std::span<const std::int64_t> DistributedVector<T>::offsets() const
{
    return detail::checked(state_)->offsets;
}

template <class T>
void DistributedVector<T>::upload(const T* host)
{
    detail::upload_vector(detail::checked(state_), host);
}

template <class T>
void DistributedVector<T>::download(T* host) const
{
    detail::download_vector(detail::checked(state_), host);
}

template <class T>
void DistributedVector<T>::fill(T value)
{
    const auto vector = detail::checked(state_);
    const bool shared = vector->runtime->shared_memory();
    vector->runtime->submit([vector, value, shared](runtime::Worker& worker, runtime::Rendezvous&) {
        const auto part = detail::part_of(*vector, static_cast<std::size_t>(worker.rank()), shared);
        kernels::fill(part.place, part.count, value, worker.context());
    });
}

template class DistributedVector<float>;
template class DistributedVector<double>;

}  // namespace rmsp
