#include "runtime/spgemm/whole_rows.hpp"

#include <utility>
#include <vector>

#include "core/value_types.hpp"
#include "runtime/node/node.hpp"
#include "runtime/spgemm/exchange.hpp"
#include "runtime/spgemm/factors.hpp"
#include "runtime/spgemm/matrix_factor.hpp"

namespace rmsp::spgemm {

template <class T>
bool bring_to_first_device(const std::shared_ptr<detail::MatrixState<T>>& matrix, DeviceRows<T>& out)
{
    RuntimeState& runtime = *matrix->runtime;
    const auto held = matrix_factor(runtime, matrix, "the matrix");
    held->bring_structure(runtime, false);
    const CsrView<T> view = held->view();
    std::vector<transport::Range> needed(held->parts.size());
    needed.front() = {0, view.nnz};
    const ClosedAfterUse exchange(runtime, open_exchange<T>(runtime, exchange_transport(runtime, {}), held->slices,
                                                            std::move(needed), &held->parts));
    bool has_room = true;
    runtime
        .submit([&](engine::Worker& worker, engine::Rendezvous& meeting) {
            kernels::Memory& memory = *worker.context().memory;
            DeviceRows<T> nothing;
            DeviceRows<T>& rows = worker.rank() == 0 ? out : nothing;
            if (make_room(*exchange, memory, rows, worker, meeting)) {
                held->refresh(worker, meeting);
                exchange_columns(*exchange, view, worker, meeting);
                exchange_values<T>(*exchange, nullptr, worker, meeting);
                if (worker.rank() == 0) {
                    take_exchanged(*exchange, view, consecutive(view, 0, view.rows), memory, rows, worker);
                }
            } else if (worker.rank() == 0) {
                has_room = false;
            }
            worker.stream().synchronize();
        })
        .get();
    return has_room;
}

#define RMSP_INSTANTIATE(T) \
    template bool bring_to_first_device(const std::shared_ptr<detail::MatrixState<T>>&, DeviceRows<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
