#include "runtime/spgemm/slice_exchange.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/value_types.hpp"
#include "runtime/node/node.hpp"

namespace rmsp::spgemm {

SliceExchange::SliceExchange(RuntimeState& runtime, std::vector<std::int64_t> slices,
                             std::vector<transport::Range> needed)
{
    exchange_.values.copies.resize(needed.size());
    exchange_.values.held.resize(needed.size());
    exchange_.slices = std::move(slices);
    exchange_.needed = std::move(needed);
    exchange_.channel = entry_channel(runtime, exchange_transport(runtime, {}));
}

template <class E>
void SliceExchange::gather(engine::Worker& worker, engine::Rendezvous& meeting, const E* held, E* to)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    gather_from<E>(worker, meeting, entry_zero(held, exchange_.slices[rank]), to);
}

template <class E>
void SliceExchange::complete(engine::Worker& worker, engine::Rendezvous& meeting, E* to)
{
    gather_from<E>(worker, meeting, entry_zero(to, needed(worker.rank()).first), to);
}

template <class E>
void SliceExchange::gather_from(engine::Worker& worker, engine::Rendezvous& meeting, void* held, E* to)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    exchange_.values.held[rank] = held;
    exchange_.values.copies[rank] = entry_zero(to, exchange_.needed[rank].first);
    meeting.arrive_and_wait();
    gather_held<E>(worker, meeting, exchange_, exchange_.values);
}

std::vector<std::int64_t> all_on(int rank, int devices, std::int64_t size)
{
    std::vector<std::int64_t> slices(static_cast<std::size_t>(devices) + 1, size);
    std::fill_n(slices.begin(), rank + 1, 0);
    return slices;
}

#define RMSP_INSTANTIATE(E)                                                                  \
    template void SliceExchange::gather(engine::Worker&, engine::Rendezvous&, const E*, E*); \
    template void SliceExchange::complete(engine::Worker&, engine::Rendezvous&, E*);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
RMSP_INSTANTIATE(std::uint8_t)
RMSP_INSTANTIATE(std::int32_t)
RMSP_INSTANTIATE(std::int64_t)

}  // namespace rmsp::spgemm
