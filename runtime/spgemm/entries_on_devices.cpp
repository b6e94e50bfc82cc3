#include "runtime/spgemm/entries_on_devices.hpp"

#include <cstddef>
#include <memory>
#include <utility>

#include "core/value_types.hpp"
#include "runtime/node/node.hpp"

namespace rmsp::spgemm {
namespace {

/// Brings the worker's part of an array to where its first entry goes.
template <class E>
void bring(engine::Worker& worker, engine::Rendezvous& meeting, EntryExchange& exchange, EntryExchange::Places& places,
           E* to)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    places.copies[rank] = entry_zero(to, exchange.needed[rank].first);
    meeting.arrive_and_wait();
    gather_held<E>(worker, meeting, exchange, places);
}

}  // namespace

template <class T>
EntriesOnDevices<T>::EntriesOnDevices(RuntimeState& runtime, std::vector<FactorPart<T>> parts,
                                      std::vector<std::int64_t> slices)
    : runtime_(runtime), parts_(std::move(parts)), slices_(std::move(slices))
{
}

template <class T>
distributed::DeviceColumns EntriesOnDevices<T>::columns() const
{
    std::vector<const std::int32_t*> columns;
    for (const FactorPart<T>& part : parts_) {
        columns.push_back(part.col_idx);
    }
    return {runtime_, std::move(columns), slices_};
}

template <class T>
void EntriesOnDevices<T>::split(const Partition& partition)
{
    auto exchange = std::make_shared<EntryExchange>();
    exchange->slices = slices_;
    exchange->values.copies.resize(parts_.size());
    exchange->col_idx.copies.resize(parts_.size());
    for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
        exchange->needed.push_back({partition.parts[rank].start_idx, partition.parts[rank].end_idx});
        exchange->values.held.push_back(entry_zero(parts_[rank].values, slices_[rank]));
        exchange->col_idx.held.push_back(entry_zero(parts_[rank].col_idx, slices_[rank]));
    }
    exchange_.emplace(runtime_, std::move(exchange));
    open_channel(runtime_, exchange_transport(runtime_, {}), sizeof(T), **exchange_);
}

template <class T>
void EntriesOnDevices<T>::gather(engine::Worker& worker, engine::Rendezvous& meeting, T* to)
{
    bring(worker, meeting, **exchange_, (*exchange_)->values, to);
}

template <class T>
void EntriesOnDevices<T>::gather_columns(engine::Worker& worker, engine::Rendezvous& meeting, std::int32_t* to)
{
    bring(worker, meeting, **exchange_, (*exchange_)->col_idx, to);
}

#define RMSP_INSTANTIATE(T) template class EntriesOnDevices<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
