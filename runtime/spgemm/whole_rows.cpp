#include "runtime/spgemm/whole_rows.hpp"

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "core/value_types.hpp"
#include "runtime/node/node.hpp"
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
RowsOnFirstDevice<T>::RowsOnFirstDevice(RuntimeState& runtime, ResidentFactor<T>& held, std::int64_t cols)
    : held_(held), cols_(cols), entries_(runtime, held.parts, held.slices, held.first_rows)
{
    entries_.split(all_on_first(held.first_rows, held.slices.back()));
}

template <class T>
DeviceRows<T> RowsOnFirstDevice<T>::bring(engine::Worker& worker, engine::Rendezvous& meeting, bool values)
{
    DeviceRows<T> out;
    const std::int64_t rows = held_.first_rows.back();
    const std::int64_t nnz = held_.slices.back();
    const bool first = worker.rank() == 0;
    kernels::Memory& memory = *worker.context().memory;
    if (first) {
        out.col_idx = kernels::DeviceArray<std::int32_t>(memory, static_cast<std::size_t>(nnz));
        out.values = kernels::DeviceArray<T>(memory, values ? static_cast<std::size_t>(nnz) : 0);
    }
    entries_.gather_columns(worker, meeting, out.col_idx.data());
    if (values) {
        entries_.gather(worker, meeting, out.values.data());
    }
    const auto gather_row_ptr = [&]<class Pointer>(Pointer* /*type*/) {
        if (first) {
            out.row_ptr =
                kernels::DeviceArray<std::byte>(memory, (static_cast<std::size_t>(rows) + 1) * sizeof(Pointer));
        }
        auto* const to = reinterpret_cast<Pointer*>(out.row_ptr.data());
        entries_.gather_row_ptr(worker, meeting, to);
        return IndexView(static_cast<const Pointer*>(to));
    };
    const IndexView row_ptr = nnz <= std::numeric_limits<std::int32_t>::max()
                                  ? gather_row_ptr(static_cast<std::int32_t*>(nullptr))
                                  : gather_row_ptr(static_cast<std::int64_t*>(nullptr));
    if (first) {
        out.shard = {rows, cols_, nnz, row_ptr, out.col_idx.data(), out.values.data()};
    }
    return out;
}

template <class T>
void bring_to_first_device(const std::shared_ptr<detail::MatrixState<T>>& matrix, DeviceRows<T>& out)
{
    RuntimeState& runtime = *matrix->runtime;
    const auto held = matrix_factor(runtime, matrix, "the matrix");
    RowsOnFirstDevice<T> rows(runtime, *held, matrix->plan.cols);
    runtime
        .submit([&](engine::Worker& worker, engine::Rendezvous& meeting) {
            held->refresh(worker, meeting);
            DeviceRows<T> brought = rows.bring(worker, meeting, true);
            if (worker.rank() == 0) {
                out = std::move(brought);
            }
        })
        .get();
}

#define RMSP_INSTANTIATE(T)              \
    template class RowsOnFirstDevice<T>; \
    template void bring_to_first_device(const std::shared_ptr<detail::MatrixState<T>>&, DeviceRows<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
