#include "runtime/spgemm/entries_on_devices.hpp"

#include <cstddef>
#include <utility>

#include <kernels/steps/support/support.hpp>

#include "core/value_types.hpp"
#include "runtime/node/node.hpp"

namespace rmsp::spgemm {

template <class T>
EntriesOnDevices<T>::EntriesOnDevices(RuntimeState& runtime, std::vector<FactorPart<T>> parts,
                                      std::vector<std::int64_t> slices, std::vector<std::int64_t> first_rows)
    : runtime_(runtime), parts_(std::move(parts)), slices_(std::move(slices)), first_rows_(std::move(first_rows))
{
}

template <class T>
void EntriesOnDevices<T>::split(const Partition& partition)
{
    std::vector<transport::Range> needed;
    for (const PartialCsr& part : partition.parts) {
        needed.push_back({part.start_idx, part.end_idx});
    }
    exchange_.emplace(runtime_, slices_, std::move(needed));
    if (!first_rows_.empty()) {
        partition_ = partition;
        std::vector<transport::Range> rows;
        std::vector<std::int64_t> ends;
        for (const PartialCsr& part : partition.parts) {
            rows.push_back({part.start_row, part.end_row});
            ends.push_back(part.end_idx);
        }
        pointers_.emplace(runtime_, exchange_transport(runtime_, {}), first_rows_, slices_, std::move(rows),
                          std::move(ends));
    }
}

template <class T>
void EntriesOnDevices<T>::gather(engine::Worker& worker, engine::Rendezvous& meeting, T* to)
{
    exchange_->gather(worker, meeting, parts_[static_cast<std::size_t>(worker.rank())].values, to);
}

template <class T>
void EntriesOnDevices<T>::gather_columns(engine::Worker& worker, engine::Rendezvous& meeting, std::int32_t* to)
{
    exchange_->gather(worker, meeting, parts_[static_cast<std::size_t>(worker.rank())].col_idx, to);
}

template <class T>
template <class Pointer>
void EntriesOnDevices<T>::bring_row_ptr(engine::Worker& worker, engine::Rendezvous& meeting, Pointer* to)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const PartialCsr& part = partition_.parts[rank];
    const PointerExchange::Room room = pointers_->make_room(worker);
    pointers_->gather(worker, meeting, parts_[rank].row_ptr, room, [&](IndexView pointers) {
        if (to != nullptr) {
            kernels::localize_row_ptr(pointers, part.rows(), part.start_idx, part.nnz(), to, worker.context());
        }
    });
}

template <class T>
void EntriesOnDevices<T>::gather_row_ptr(engine::Worker& worker, engine::Rendezvous& meeting, std::int32_t* to)
{
    bring_row_ptr(worker, meeting, to);
}

template <class T>
void EntriesOnDevices<T>::gather_row_ptr(engine::Worker& worker, engine::Rendezvous& meeting, std::int64_t* to)
{
    bring_row_ptr(worker, meeting, to);
}

#define RMSP_INSTANTIATE(T) template class EntriesOnDevices<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
