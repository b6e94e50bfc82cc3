#include <mutex>

#include <rmsp/runtime.hpp>

#include "runtime/matrix/matrix_state.hpp"
#include "runtime/plan/predict.hpp"

namespace rmsp {

template <class T>
Report DistributedMatrix<T>::report() const
{
    detail::RuntimeState& runtime = *detail::checked(state_)->runtime;
    const std::vector<double> limits = runtime.limits(state_->options.mode);
    std::lock_guard lock(runtime.mutex);
    Report report;
    report.plan = distributed::current_plan(*state_);
    // As it is now: what it was planned for may have failed since.
    report.plan.transport = runtime.transport_name();
    report.plan.transport_reason = runtime.transport_reason();
    for (std::size_t i = 0; i < report.plan.shards.size(); ++i) {
        report.plan.shards[i].limit_gbs = limits[i];
    }
    plan::predict(report.plan, runtime, state_->options.x_layout);
    report.setup = state_->record.setup;
    report.measurements = state_->record.measurements;
    report.notes = runtime.notes;
    report.notes.insert(report.notes.end(), state_->record.notes.begin(), state_->record.notes.end());
    report.topology = runtime.topology.name;
    return report;
}

#define RMSP_INSTANTIATE(T) template Report DistributedMatrix<T>::report() const;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp
