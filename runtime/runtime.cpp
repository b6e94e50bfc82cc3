#include <rmsp/runtime.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/caller_array.hpp"
#include "runtime/doctor/doctor_cache.hpp"
#include "runtime/matrix/diagonal.hpp"
#include "runtime/matrix/distribute.hpp"
#include "runtime/matrix/measure.hpp"
#include "runtime/matrix/products.hpp"
#include "runtime/matrix/update.hpp"
#include "runtime/matrix/vector.hpp"
#include "runtime/plan/plan_exchange.hpp"
#include "runtime/plan/planner.hpp"
#include "runtime/transport/table.hpp"

namespace rmsp {
namespace {

/// Row pointers of coordinates that are sorted by row.
template <class T>
HostVector<std::int64_t> row_pointers(const plan::Stored<T>& a)
{
    HostVector<std::int64_t> row_ptr(static_cast<std::size_t>(a.rows) + 1);
    a.row_idx.visit([&](const auto* row) {
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i <= a.nnz; ++i) {
            const std::int64_t end = i == a.nnz ? a.rows : std::int64_t{row[i]};
            for (std::int64_t r = i == 0 ? 0 : std::int64_t{row[i - 1]} + 1; r <= end; ++r) {
                row_ptr[static_cast<std::size_t>(r)] = i;
            }
        }
    });
    return row_ptr;
}

/// A caller's matrix on its way to the devices: checked, and sorted if that was asked for.
template <class T>
class Prepared {
public:
    template <class View>
    Prepared(const View& a, const DistributeOptions& options) : options_(options)
    {
        const auto begin = std::chrono::steady_clock::now();
        const auto seconds = [&] {
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        };
        validate(a);
        const double validated = seconds();
        setup_.push_back({"validate", {validated}, true});
        stored_ = plan::stored(a);
        if constexpr (std::is_same_v<View, CooView<T>>) {
            if (stored_.order == CooOrder::unsorted && options.unsorted == Unsorted::sort) {
                copy_ = sort_by_row(a);
                stored_ = plan::stored(copy_->view());
                options_.borrow = false;
                setup_.push_back({"sort", {seconds() - validated}, true});
            }
            if (options.mode == Mode::streamed && stored_.order == CooOrder::by_row) {
                // Row pointers cost one pass, and spare sending the row indices at each apply.
                const double before = seconds();
                row_ptr_ = row_pointers(stored_);
                stored_.row_ptr = IndexView(row_ptr_.data());
                stored_.coordinates = false;
                setup_.push_back({"row pointers", {seconds() - before}, true});
            }
        }
    }

    Plan plan(const detail::RuntimeState& runtime) const
    {
        Plan plan = plan::make_plan(runtime, stored_, options_);
        plan::plan_exchange(plan, runtime, stored_, options_);
        return plan;
    }
    /// Once.
    std::shared_ptr<detail::MatrixState<T>> distribute(const std::shared_ptr<detail::RuntimeState>& runtime)
    {
        auto matrix = distributed::distribute(runtime, stored_, options_);
        matrix->origin.sorted_copy = copy_.has_value();
        if (options_.mode == Mode::streamed) {
            matrix->origin.kept_row_ptr = std::move(row_ptr_);
            matrix->origin.kept_copy = copy_ ? std::move(*copy_) : CooMatrix<T>();
        }
        matrix->record.setup.insert(matrix->record.setup.begin(), setup_.begin(), setup_.end());
        return matrix;
    }

private:
    DistributeOptions options_;
    plan::Stored<T> stored_;
    std::optional<CooMatrix<T>> copy_;
    HostVector<std::int64_t> row_ptr_;
    std::vector<PhaseTimes> setup_;
};

template <class T, class View>
std::shared_ptr<detail::MatrixState<T>> distribute_view(const std::shared_ptr<detail::RuntimeState>& runtime,
                                                        const View& a, const DistributeOptions& options)
{
    detail::checked(runtime)->require_live();
    return Prepared<T>(a, options).distribute(runtime);
}

/// Applies with vectors in host memory.
template <class T>
std::future<void> submit_apply(const std::shared_ptr<detail::MatrixState<T>>& matrix, bool of_transpose, T alpha,
                               const T* x, T beta, T* y)
{
    core::require_array("x", x, distributed::x_side(*matrix, of_transpose).size());
    core::require_array("y", y, distributed::x_side(*matrix, !of_transpose).size());
    return matrix->runtime->submit(
        [matrix, of_transpose, alpha, beta, source = distributed::Source<T>{x, nullptr},
         target = distributed::Target<T>{y, nullptr}](engine::Worker& worker, engine::Rendezvous& meeting) {
            distributed::apply_on(*matrix, worker, meeting, alpha, source, beta, target, nullptr, of_transpose);
        },
        [matrix, y, of_transpose] { distributed::finish_host_y(*matrix, y, of_transpose); }, true);
}

/// Applies with vectors on the devices.
template <class T>
std::future<void> submit_apply(const std::shared_ptr<detail::MatrixState<T>>& matrix, bool of_transpose, T alpha,
                               const std::shared_ptr<detail::VectorState<T>>& x, T beta,
                               const std::shared_ptr<detail::VectorState<T>>& y)
{
    distributed::require_operands(matrix, of_transpose, x, y);
    return matrix->runtime->submit(
        [matrix, of_transpose, alpha, beta, source = distributed::Source<T>{nullptr, x},
         target = distributed::Target<T>{nullptr, y}](engine::Worker& worker, engine::Rendezvous& meeting) {
            distributed::apply_on(*matrix, worker, meeting, alpha, source, beta, target, nullptr, of_transpose);
        });
}

}  // namespace

BindPolicy parse_bind_policy(const std::string& text)
{
    if (text == "auto") {
        return BindPolicy::automatic;
    }
    if (text == "none") {
        return BindPolicy::none;
    }
    if (text == "strict") {
        return BindPolicy::strict;
    }
    throw Error(ErrorCode::usage, fmt::format("bind policy \"{}\" is not one of auto, none, strict", text));
}

Runtime::Runtime(const RuntimeOptions& options) : state_(node::open_devices(options))
{
    if (state_->workers.empty()) {
        return;
    }
    std::vector<std::string> transports = options.transports;
    if (options.one_thread) {
        // The others' kernels wait on one device for those of another, which a single thread has not queued yet.
        if (std::any_of(transports.begin(), transports.end(),
                        [](const auto& name) { return !transport::transport_named(name).through_host; })) {
            throw Error(ErrorCode::usage,
                        fmt::format("one thread for all devices moves data through the host only; transports {} need "
                                    "a thread for each device",
                                    fmt::join(transports, ", ")));
        }
        transports = {transport::transport_through_host().name};
    }
    state_->connection = transport::connect(state_->workers, transports, doctor::tested_transports(*state_));
    state_->jobs = std::make_unique<engine::JobQueue>(
        state_->workers, state_->shared_memory(), [s = state_.get()](std::uint64_t job) { s->give_up(job); },
        options.one_thread);
}

Runtime::~Runtime()
{
    if (state_) {
        state_->stop();
    }
}

Runtime::Runtime(Runtime&&) noexcept = default;

Runtime& Runtime::operator=(Runtime&& other) noexcept
{
    if (this != &other) {
        if (state_) {
            state_->stop();
        }
        state_ = std::move(other.state_);
    }
    return *this;
}

const Topology& Runtime::topology() const { return detail::checked(state_)->topology; }

std::vector<DeviceInfo> Runtime::devices() const
{
    const auto& state = detail::checked(state_);
    std::lock_guard lock(state->mutex);
    return state->infos;
}

std::string Runtime::transport() const
{
    const auto& connection = detail::checked(state_)->connection;
    return fmt::format("{} ({})", connection.name, connection.reason);
}

template <class T>
DistributedMatrix<T> Runtime::distribute(const CsrView<T>& a, const DistributeOptions& options)
{
    return DistributedMatrix<T>(distribute_view<T>(state_, a, options));
}

template <class T>
DistributedMatrix<T> Runtime::distribute(const CscView<T>& a, const DistributeOptions& options)
{
    return DistributedMatrix<T>(distribute_view<T>(state_, a, options));
}

template <class T>
DistributedMatrix<T> Runtime::distribute(const CooView<T>& a, const DistributeOptions& options)
{
    return DistributedMatrix<T>(distribute_view<T>(state_, a, options));
}

template <class T>
Plan Runtime::plan(const CsrView<T>& a, const DistributeOptions& options) const
{
    return Prepared<T>(a, options).plan(*detail::checked(state_));
}

template <class T>
Plan Runtime::plan(const CscView<T>& a, const DistributeOptions& options) const
{
    return Prepared<T>(a, options).plan(*detail::checked(state_));
}

template <class T>
Plan Runtime::plan(const CooView<T>& a, const DistributeOptions& options) const
{
    return Prepared<T>(a, options).plan(*detail::checked(state_));
}

void Runtime::synchronize()
{
    detail::checked(state_)->submit([](engine::Worker&, engine::Rendezvous&) {}).get();
}

template <class T>
std::int64_t DistributedMatrix<T>::rows() const
{
    return detail::checked(state_)->plan.rows;
}

template <class T>
std::int64_t DistributedMatrix<T>::cols() const
{
    return detail::checked(state_)->plan.cols;
}

template <class T>
std::int64_t DistributedMatrix<T>::nnz() const
{
    return detail::checked(state_)->plan.nnz;
}

template <class T>
const Plan& DistributedMatrix<T>::plan() const
{
    return detail::checked(state_)->plan;
}

template <class T>
void DistributedMatrix<T>::apply(T alpha, const T* x, T beta, T* y)
{
    apply_async(alpha, x, beta, y).get();
}

template <class T>
std::future<void> DistributedMatrix<T>::apply_async(T alpha, const T* x, T beta, T* y)
{
    return submit_apply(detail::checked(state_), false, alpha, x, beta, y);
}

template <class T>
void DistributedMatrix<T>::apply(T alpha, const DistributedVector<T>& x, T beta, DistributedVector<T>& y)
{
    apply_async(alpha, x, beta, y).get();
}

template <class T>
std::future<void> DistributedMatrix<T>::apply_async(T alpha, const DistributedVector<T>& x, T beta,
                                                    DistributedVector<T>& y)
{
    return submit_apply(detail::checked(state_), false, alpha, detail::checked(x.state_), beta,
                        detail::checked(y.state_));
}

template <class T>
void DistributedMatrix<T>::apply_transposed(T alpha, const T* x, T beta, T* y)
{
    apply_transposed_async(alpha, x, beta, y).get();
}

template <class T>
std::future<void> DistributedMatrix<T>::apply_transposed_async(T alpha, const T* x, T beta, T* y)
{
    distributed::prepare_apply(*detail::checked(state_), true);
    return submit_apply(state_, true, alpha, x, beta, y);
}

template <class T>
void DistributedMatrix<T>::apply_transposed(T alpha, const DistributedVector<T>& x, T beta, DistributedVector<T>& y)
{
    apply_transposed_async(alpha, x, beta, y).get();
}

template <class T>
std::future<void> DistributedMatrix<T>::apply_transposed_async(T alpha, const DistributedVector<T>& x, T beta,
                                                               DistributedVector<T>& y)
{
    distributed::prepare_apply(*detail::checked(state_), true);
    return submit_apply(state_, true, alpha, detail::checked(x.state_), beta, detail::checked(y.state_));
}

template <class T>
void DistributedMatrix<T>::update_values(const T* values)
{
    core::require_array("values", values, nnz());
    distributed::update_values(state_, values);
}

template <class T>
DistributedVector<T> DistributedMatrix<T>::make_x(Layout layout, Order order) const
{
    const auto& matrix = detail::checked(state_);
    return DistributedVector<T>(distributed::make_vector(matrix, distributed::x_side(*matrix, false), layout, order));
}

template <class T>
DistributedVector<T> DistributedMatrix<T>::make_y(Order order) const
{
    const auto& matrix = detail::checked(state_);
    return DistributedVector<T>(
        distributed::make_vector(matrix, distributed::x_side(*matrix, true), Layout::rows, order));
}

template <class T>
DistributedVector<T> DistributedMatrix<T>::diagonal() const
{
    return DistributedVector<T>(distributed::diagonal(detail::checked(state_)));
}

template <class T>
Measurement DistributedMatrix<T>::measure(Vectors vectors, std::int64_t warmup, std::int64_t iterations, T alpha,
                                          const T* x, T beta, const T* y_in, T* y_out, Caches caches)
{
    core::require_array("x", x, cols());
    core::require_array("y_in", y_in, beta != T{0} ? rows() : 0);
    return distributed::measure_matrix(state_, vectors, warmup, iterations, alpha, x, beta, y_in, y_out,
                                       caches == Caches::cold);
}

#define RMSP_INSTANTIATE(T) template class DistributedMatrix<T>;
#define RMSP_INSTANTIATE_FOR(T, View)                                                            \
    template DistributedMatrix<T> Runtime::distribute(const View<T>&, const DistributeOptions&); \
    template Plan Runtime::plan(const View<T>&, const DistributeOptions&) const;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE_FOR, CsrView)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE_FOR, CscView)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE_FOR, CooView)

}  // namespace rmsp
