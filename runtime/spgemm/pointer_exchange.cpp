#include "runtime/spgemm/pointer_exchange.hpp"

#include <limits>
#include <utility>

#include <kernels/steps/support/support.hpp>

namespace rmsp::spgemm {
namespace {

bool narrow(std::int64_t nnz) { return nnz <= std::numeric_limits<std::int32_t>::max(); }

}  // namespace

PointerExchange::PointerExchange(RuntimeState& runtime, const std::string& transport,
                                 std::vector<std::int64_t> first_rows, std::vector<std::int64_t> first_entries,
                                 std::vector<transport::Range> rows, std::vector<std::int64_t> end_entries)
    : first_entries_(std::move(first_entries)), end_entries_(std::move(end_entries))
{
    exchange_.values.copies.resize(rows.size());
    exchange_.values.held.resize(rows.size());
    exchange_.slices = std::move(first_rows);
    exchange_.needed = std::move(rows);
    exchange_.channel = entry_channel(runtime, transport);
}

PointerExchange::Room PointerExchange::make_room(engine::Worker& worker) const
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const std::size_t entry = narrow(nnz()) ? sizeof(std::int32_t) : sizeof(std::int64_t);
    const auto array = [&](std::int64_t rows) {
        return kernels::DeviceArray<std::byte>(*worker.context().memory, (static_cast<std::size_t>(rows) + 1) * entry);
    };
    return {array(exchange_.slices[rank + 1] - exchange_.slices[rank]),
            array(exchange_.needed[rank].end - exchange_.needed[rank].first)};
}

void PointerExchange::gather(engine::Worker& worker, engine::Rendezvous& meeting, IndexView held, const Room& room,
                             const std::function<void(IndexView pointers)>& use)
{
    if (narrow(nnz())) {
        gather_as<std::int32_t>(worker, meeting, held, room, use);
    } else {
        gather_as<std::int64_t>(worker, meeting, held, room, use);
    }
}

template <class Pointer>
void PointerExchange::gather_as(engine::Worker& worker, engine::Rendezvous& meeting, IndexView held, const Room& room,
                                const std::function<void(IndexView pointers)>& use)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const std::int64_t rows = exchange_.slices[rank + 1] - exchange_.slices[rank];
    const transport::Range needed = exchange_.needed[rank];
    auto* const own = reinterpret_cast<Pointer*>(room.own.data());
    auto* const here = reinterpret_cast<Pointer*>(room.needed.data());
    if (rows > 0) {
        kernels::localize_row_ptr(held, rows, -first_entries_[rank], nnz(), own, worker.context());
    }
    exchange_.values.held[rank] = entry_zero(own, exchange_.slices[rank]);
    exchange_.values.copies[rank] = entry_zero(here, needed.first);
    meeting.arrive_and_wait();
    gather_held<Pointer>(worker, meeting, exchange_, exchange_.values);
    const auto end = static_cast<Pointer>(end_entries_[rank]);
    worker.device().upload(worker.stream(), here + (needed.end - needed.first), &end, sizeof end);
    use(IndexView(static_cast<const Pointer*>(here)));
    worker.stream().synchronize();  // before `end` goes
}

}  // namespace rmsp::spgemm
