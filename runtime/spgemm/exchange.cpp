#include "runtime/spgemm/exchange.hpp"

#include <algorithm>
#include <functional>
#include <mutex>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/node/node.hpp"
#include "runtime/transport/table.hpp"

namespace rmsp::spgemm {
namespace {

/// Bytes of memory a device for transports that need some.
constexpr std::int64_t window_bytes = std::int64_t{32} << 20;

template <class E>
E* at(void* zero, std::int64_t entry)
{
    return static_cast<E*>(zero) + entry;
}

/// Gathers one array; `write` queues what puts the worker's slice into its copy.
void gather(engine::Worker& worker, engine::Rendezvous& meeting, const EntryExchange& exchange,
            const EntryExchange::Places& places, std::size_t entry_bytes, const std::function<void()>& write)
{
    transport::Gather gather{places.copies, exchange.slices, exchange.needed, entry_bytes};
    gather.held = places.held;
    gather.large = true;
    if (exchange.channel) {
        exchange.channel->gather(worker, worker.stream(), meeting, gather, write);
        exchange.channel->settle(worker, worker.stream(), meeting);
        return;
    }
    write();
    meeting.arrive_and_wait();
    for (int other = 0; other < gather.devices(); ++other) {
        if (other != worker.rank()) {
            const transport::Transfer in = gather.transfer(other, worker.rank());
            worker.stream().copy(in.to, in.from, in.bytes);
        }
    }
    meeting.arrive_and_wait();
}

template <class Out, class In>
void upload_slice(engine::Worker& worker, const EntryExchange& exchange, const In* from, void* to_zero)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const std::int64_t first = exchange.slices[rank];
    Out* const to = at<Out>(to_zero, first);
    const std::size_t bytes = static_cast<std::size_t>(exchange.slices[rank + 1] - first) * sizeof(Out);
    if constexpr (std::is_same_v<Out, In>) {
        worker.device().upload(worker.stream(), to, from + first, bytes);
    } else {
        worker.device().upload(worker.stream(), to, bytes, engine::narrowed(from + first));
    }
}

/// Copies what the device needs of its own slice, where that is in another matrix's arrays.
template <class E>
void copy_own(engine::Worker& worker, const EntryExchange& exchange, const EntryExchange::Places& places)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const std::int64_t first = std::max(exchange.needed[rank].first, exchange.slices[rank]);
    const std::int64_t end = std::min(exchange.needed[rank].end, exchange.slices[rank + 1]);
    if (first < end && places.copies[rank] != places.held[rank]) {
        worker.stream().copy(at<E>(places.copies[rank], first), at<E>(places.held[rank], first),
                             static_cast<std::size_t>(end - first) * sizeof(E));
    }
}

}  // namespace

template <class E>
void gather_held(engine::Worker& worker, engine::Rendezvous& meeting, const EntryExchange& exchange,
                 const EntryExchange::Places& places)
{
    gather(worker, meeting, exchange, places, sizeof(E), [&] { copy_own<E>(worker, exchange, places); });
}

std::shared_ptr<transport::Channel> entry_channel(RuntimeState& runtime, const std::string& transport)
{
    if (runtime.shared_memory() || runtime.devices() == 1) {
        return nullptr;
    }
    transport::Transport& between = runtime.transport(transport);
    std::lock_guard lock(runtime.opening_entries);
    std::shared_ptr<transport::Channel>& kept = runtime.entry_channels[&between];
    if (!kept) {
        std::shared_ptr<transport::Channel> channel = between.make_channel(runtime.devices(), window_bytes);
        engine::Tasks room(static_cast<std::size_t>(runtime.devices()));
        try {
            runtime
                .submit([&](engine::Worker& worker, engine::Rendezvous&) {
                    between.open(*channel, worker);
                    between.open_pool(worker);
                })
                .get();
        } catch (...) {
            // What some devices made goes on their workers.
            for (int rank = 0; rank < runtime.devices(); ++rank) {
                runtime.release(rank, room, [channel, rank] { channel->close(rank); });
            }
            throw;
        }
        kept = std::move(channel);
    }
    return kept;
}

std::vector<transport::Range> needed_entries(const std::vector<RowSelection>& selections, IndexView row_ptr)
{
    std::vector<transport::Range> needed;
    for (const RowSelection& selection : selections) {
        if (selection.runs.size() > 1) {
            return {};
        }
        needed.push_back(selection.runs.empty() ? transport::Range{}
                                                : transport::Range{row_ptr[selection.runs.front().first],
                                                                   row_ptr[selection.runs.front().end]});
    }
    return needed;
}

std::vector<std::int64_t> entry_slices(const std::vector<transport::Range>& needed)
{
    transport::Range all;
    for (const transport::Range& range : needed) {
        all = transport::hull(all, range);
    }
    const std::int64_t size = all.end - all.first;
    const auto devices = static_cast<std::int64_t>(needed.size());
    if (size == 0) {
        return {};
    }
    std::vector<std::int64_t> slices{all.first};
    for (std::int64_t d = 1; d < devices; ++d) {
        const auto right = static_cast<std::size_t>(d);
        const std::int64_t least = std::max(slices.back(), needed[right].first);
        const std::int64_t most = needed[right - 1].end;
        if (least > most) {
            return {};
        }
        slices.push_back(std::clamp(all.first + size / devices * d + size % devices * d / devices, least, most));
    }
    slices.push_back(all.end);
    for (std::size_t d = 0; d < needed.size(); ++d) {
        if (slices[d] < needed[d].first || slices[d + 1] > needed[d].end) {
            return {};
        }
    }
    return slices;
}

bool exchange_pays(const std::vector<RowSelection>& from_host, const std::vector<transport::Range>& needed)
{
    const std::vector<std::int64_t> slices = entry_slices(needed);
    if (slices.empty()) {
        return false;
    }
    std::int64_t direct = 0;
    std::int64_t slice = 0;
    std::int64_t gathered = 0;
    for (std::size_t d = 0; d < needed.size(); ++d) {
        direct = std::max(direct, from_host[d].nnz);
        slice = std::max(slice, slices[d + 1] - slices[d]);
        gathered = std::max(gathered, needed[d].end - needed[d].first - (slices[d + 1] - slices[d]));
    }
    // Links between devices are that much faster than those to the host.
    constexpr std::int64_t faster = 6;
    return slice + gathered / faster <= direct / 4 * 3;
}

std::string exchange_transport(const RuntimeState& runtime, const SpgemmOptions& options)
{
    const std::string& name = options.transport;
    const auto* const row = name == "auto" || name == "none"
                                ? nullptr
                                : &transport::transport_named(name, "transport of a product", {"auto", "none"});
    if (runtime.options.one_thread && row != nullptr && !row->through_host) {
        throw Error(ErrorCode::usage,
                    fmt::format("one thread for all devices moves rows of B through the host only, not by {}", name));
    }
    if (runtime.devices() == 1 || name == "none") {
        return "none";
    }
    if (runtime.shared_memory()) {
        return "shared";
    }
    return name != "auto"                 ? name
           : runtime.connection.transport ? runtime.transport_name()
                                          : transport::transports().front().name;
}

template <class T>
std::unique_ptr<EntryExchange> open_exchange(RuntimeState& runtime, const std::string& transport,
                                             std::vector<std::int64_t> slices, std::vector<transport::Range> needed,
                                             const std::vector<FactorPart<T>>* held)
{
    const auto devices = static_cast<std::size_t>(runtime.devices());
    auto exchange = std::make_unique<EntryExchange>();
    exchange->slices = std::move(slices);
    exchange->needed = std::move(needed);
    exchange->here = exchange->needed;
    for (EntryExchange::Places* places : {&exchange->col_idx, &exchange->values}) {
        places->copies.resize(devices);
        places->held.resize(held != nullptr ? devices : 0);
    }
    for (std::size_t rank = 0; held != nullptr && rank < devices; ++rank) {
        const FactorPart<T>& part = (*held)[rank];
        const std::int64_t first = exchange->slices[rank];
        exchange->col_idx.held[rank] = entry_zero(part.col_idx, first);
        exchange->values.held[rank] = entry_zero(part.values, first);
        transport::Range& range = exchange->needed[rank];
        if (first <= range.first && range.end <= exchange->slices[rank + 1]) {
            exchange->col_idx.copies[rank] = exchange->col_idx.held[rank];
            exchange->values.copies[rank] = exchange->values.held[rank];
            range = {};
        }
    }
    exchange->channel = entry_channel(runtime, transport);
    return exchange;
}

template <class T>
bool make_room(EntryExchange& exchange, engine::MemoryBudget& memory, DeviceRows<T>& b, engine::Worker& worker,
               engine::Rendezvous& meeting, const std::function<void()>& more)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const transport::Range range = exchange.needed[rank];
    const auto n = static_cast<std::size_t>(range.end - range.first);
    try {
        b.col_idx = kernels::DeviceArray<std::int32_t>(memory, n);
        b.values = kernels::DeviceArray<T>(memory, n);
        if (n > 0) {
            exchange.col_idx.copies[rank] = entry_zero(b.col_idx.data(), range.first);
            exchange.values.copies[rank] = entry_zero(b.values.data(), range.first);
        }
        more();
    } catch (const Error& e) {
        if (e.code() != ErrorCode::out_of_memory) {
            throw;
        }
        exchange.given_up = true;
    }
    meeting.arrive_and_wait();
    if (exchange.given_up) {
        b = {};
        return false;
    }
    return true;
}

template <class T>
void exchange_columns(const EntryExchange& exchange, const CsrView<T>& b, engine::Worker& worker,
                      engine::Rendezvous& meeting)
{
    if (exchange.of_resident()) {
        gather_held<std::int32_t>(worker, meeting, exchange, exchange.col_idx);
        return;
    }
    const auto rank = static_cast<std::size_t>(worker.rank());
    gather(worker, meeting, exchange, exchange.col_idx, sizeof(std::int32_t), [&] {
        b.col_idx.visit([&](const auto* columns) {
            upload_slice<std::int32_t>(worker, exchange, columns, exchange.col_idx.copies[rank]);
        });
    });
}

template <class T>
void exchange_values(const EntryExchange& exchange, const T* from, engine::Worker& worker, engine::Rendezvous& meeting)
{
    if (exchange.of_resident()) {
        gather_held<T>(worker, meeting, exchange, exchange.values);
        return;
    }
    const auto rank = static_cast<std::size_t>(worker.rank());
    gather(worker, meeting, exchange, exchange.values, sizeof(T),
           [&] { upload_slice<T>(worker, exchange, from, exchange.values.copies[rank]); });
}

template <class T>
void take_exchanged(const EntryExchange& exchange, const CsrView<T>& b, const RowSelection& rows,
                    engine::MemoryBudget& memory, DeviceRows<T>& out, engine::Worker& worker)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const IndexView row_ptr = out.shard.row_ptr.data() != nullptr
                                  ? out.shard.row_ptr
                                  : upload_row_pointers(worker, memory, b, rows, 0, b.rows, out.row_ptr);
    const std::int64_t first = exchange.here[rank].first;
    out.describe(rows, {b.rows, b.cols, rows.nnz, row_ptr,
                        rows.nnz > 0 ? at<std::int32_t>(exchange.col_idx.copies[rank], first) : nullptr,
                        rows.nnz > 0 ? at<T>(exchange.values.copies[rank], first) : nullptr});
}

#define RMSP_INSTANTIATE(T)                                                                                           \
    template void gather_held<T>(engine::Worker&, engine::Rendezvous&, const EntryExchange&,                          \
                                 const EntryExchange::Places&);                                                       \
    template std::unique_ptr<EntryExchange> open_exchange(RuntimeState&, const std::string&,                          \
                                                          std::vector<std::int64_t>, std::vector<transport::Range>,   \
                                                          const std::vector<FactorPart<T>>*);                         \
    template bool make_room(EntryExchange&, engine::MemoryBudget&, DeviceRows<T>&, engine::Worker&,                   \
                            engine::Rendezvous&, const std::function<void()>&);                                       \
    template void exchange_columns(const EntryExchange&, const CsrView<T>&, engine::Worker&, engine::Rendezvous&);    \
    template void exchange_values(const EntryExchange&, const T*, engine::Worker&, engine::Rendezvous&);              \
    template void take_exchanged(const EntryExchange&, const CsrView<T>&, const RowSelection&, engine::MemoryBudget&, \
                                 DeviceRows<T>&, engine::Worker&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
template void gather_held<std::uint8_t>(engine::Worker&, engine::Rendezvous&, const EntryExchange&,
                                        const EntryExchange::Places&);
template void gather_held<std::int32_t>(engine::Worker&, engine::Rendezvous&, const EntryExchange&,
                                        const EntryExchange::Places&);
template void gather_held<std::int64_t>(engine::Worker&, engine::Rendezvous&, const EntryExchange&,
                                        const EntryExchange::Places&);

}  // namespace rmsp::spgemm
