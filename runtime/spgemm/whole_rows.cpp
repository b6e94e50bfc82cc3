#include "runtime/spgemm/whole_rows.hpp"

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <kernels/steps/support/support.hpp>

#include "core/value_types.hpp"
#include "runtime/node/node.hpp"
#include "runtime/spgemm/entries_on_devices.hpp"
#include "runtime/spgemm/factors.hpp"
#include "runtime/spgemm/matrix_factor.hpp"

namespace rmsp::spgemm {
namespace {

/// All entries to the first device.
Partition all_on_first(const std::vector<std::int64_t>& first_rows, std::int64_t nnz)
{
    Partition partition;
    partition.rows = first_rows.back();
    partition.nnz = nnz;
    partition.parts.assign(first_rows.size() - 1, {nnz, nnz, partition.rows, partition.rows, false});
    partition.parts.front() = {0, nnz, 0, partition.rows, false};
    return partition;
}

/// Of the row pointers, one for each row: each device makes those of its rows.
std::shared_ptr<EntryExchange> pointer_exchange(const std::vector<std::int64_t>& first_rows)
{
    const std::size_t devices = first_rows.size() - 1;
    auto exchange = std::make_shared<EntryExchange>();
    exchange->slices = first_rows;
    exchange->needed.resize(devices);
    exchange->needed.front() = {0, first_rows.back()};
    exchange->values.copies.resize(devices);
    exchange->values.held.resize(devices);
    return exchange;
}

/// To the first device, into `out`.
template <class Pointer, class T>
void gather_pointers(engine::Worker& worker, engine::Rendezvous& meeting, const ResidentFactor<T>& held,
                     EntryExchange& exchange, DeviceRows<T>& out)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const std::int64_t rows = held.first_rows[rank + 1] - held.first_rows[rank];
    const auto all = static_cast<std::size_t>(held.first_rows.back());
    const std::int64_t nnz = held.slices.back();
    const kernels::Context context = worker.context();
    const kernels::DeviceArray<Pointer> own(*context.memory, static_cast<std::size_t>(rows) + 1);
    if (rows > 0) {
        kernels::localize_row_ptr(held.parts[rank].row_ptr, rows, -held.slices[rank], nnz, own.data(), context);
    }
    exchange.values.held[rank] = entry_zero(own.data(), held.first_rows[rank]);
    if (rank == 0) {
        out.row_ptr = kernels::DeviceArray<std::byte>(*context.memory, (all + 1) * sizeof(Pointer));
        out.shard.row_ptr = IndexView(reinterpret_cast<const Pointer*>(out.row_ptr.data()));
        exchange.values.copies[rank] = out.row_ptr.data();
    }
    meeting.arrive_and_wait();
    gather_held<Pointer>(worker, meeting, exchange, exchange.values);
    if (rank == 0) {
        const auto end = static_cast<Pointer>(nnz);
        worker.device().upload(worker.stream(), out.row_ptr.data() + all * sizeof(Pointer), &end, sizeof end);
    }
    worker.stream().synchronize();  // before `own` and `end` go
}

}  // namespace

template <class T>
void bring_to_first_device(const std::shared_ptr<detail::MatrixState<T>>& matrix, DeviceRows<T>& out)
{
    RuntimeState& runtime = *matrix->runtime;
    const auto held = matrix_factor(runtime, matrix, "the matrix");
    const std::int64_t nnz = held->slices.back();
    EntriesOnDevices<T> entries(runtime, held->parts, held->slices);
    entries.split(all_on_first(held->first_rows, nnz));
    const bool narrow = nnz <= std::numeric_limits<std::int32_t>::max();
    const ClosedAfterUse pointers(runtime, pointer_exchange(held->first_rows));
    open_channel(runtime, exchange_transport(runtime, {}), narrow ? 4 : 8, *pointers);
    runtime
        .submit([&](engine::Worker& worker, engine::Rendezvous& meeting) {
            const bool first = worker.rank() == 0;
            if (first) {
                kernels::Memory& memory = *worker.context().memory;
                out.col_idx = kernels::DeviceArray<std::int32_t>(memory, static_cast<std::size_t>(nnz));
                out.values = kernels::DeviceArray<T>(memory, static_cast<std::size_t>(nnz));
                out.shard = {matrix->plan.rows, matrix->plan.cols, nnz, {}, out.col_idx.data(), out.values.data()};
            }
            held->refresh(worker, meeting);
            entries.gather_columns(worker, meeting, first ? out.col_idx.data() : nullptr);
            entries.gather(worker, meeting, first ? out.values.data() : nullptr);
            if (narrow) {
                gather_pointers<std::int32_t>(worker, meeting, *held, *pointers, out);
            } else {
                gather_pointers<std::int64_t>(worker, meeting, *held, *pointers, out);
            }
        })
        .get();
}

#define RMSP_INSTANTIATE(T) \
    template void bring_to_first_device(const std::shared_ptr<detail::MatrixState<T>>&, DeviceRows<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
