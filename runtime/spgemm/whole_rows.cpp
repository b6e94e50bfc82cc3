#include "runtime/spgemm/whole_rows.hpp"

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

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

}  // namespace

template <class T>
void bring_to_first_device(const std::shared_ptr<detail::MatrixState<T>>& matrix, DeviceRows<T>& out)
{
    RuntimeState& runtime = *matrix->runtime;
    const auto held = matrix_factor(runtime, matrix, "the matrix");
    const std::int64_t nnz = held->slices.back();
    EntriesOnDevices<T> entries(runtime, held->parts, held->slices, held->first_rows);
    entries.split(all_on_first(held->first_rows, nnz));
    const auto gather_row_ptr = [&]<class Pointer>(engine::Worker& worker, engine::Rendezvous& meeting,
                                                   Pointer* /*type*/) {
        if (worker.rank() != 0) {
            entries.gather_row_ptr(worker, meeting, static_cast<Pointer*>(nullptr));
            return;
        }
        const auto pointers = static_cast<std::size_t>(matrix->plan.rows) + 1;
        out.row_ptr = kernels::DeviceArray<std::byte>(*worker.context().memory, pointers * sizeof(Pointer));
        auto* const to = reinterpret_cast<Pointer*>(out.row_ptr.data());
        out.shard.row_ptr = IndexView(static_cast<const Pointer*>(to));
        entries.gather_row_ptr(worker, meeting, to);
    };
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
            if (nnz <= std::numeric_limits<std::int32_t>::max()) {
                gather_row_ptr(worker, meeting, static_cast<std::int32_t*>(nullptr));
            } else {
                gather_row_ptr(worker, meeting, static_cast<std::int64_t*>(nullptr));
            }
        })
        .get();
}

#define RMSP_INSTANTIATE(T) \
    template void bring_to_first_device(const std::shared_ptr<detail::MatrixState<T>>&, DeviceRows<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
