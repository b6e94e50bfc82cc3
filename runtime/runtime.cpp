#include <rmsp/runtime.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/caller_array.hpp"
#include "core/enumerator.hpp"
#include "runtime/doctor/doctor_cache.hpp"
#include "runtime/doctor/known_links.hpp"
#include "runtime/engine/await.hpp"
#include "runtime/engine/caller_memory.hpp"
#include "runtime/matrix/caller_matrix.hpp"
#include "runtime/matrix/caller_product.hpp"
#include "runtime/matrix/diagonal.hpp"
#include "runtime/matrix/measure.hpp"
#include "runtime/matrix/products.hpp"
#include "runtime/matrix/redistribute.hpp"
#include "runtime/matrix/update.hpp"
#include "runtime/matrix/vector.hpp"
#include "runtime/transport/table.hpp"

namespace rmsp {
namespace {

/// Applies with vectors in host memory.
template <class T>
std::future<void> submit_apply(const std::shared_ptr<detail::MatrixState<T>>& matrix, bool of_transpose, T alpha,
                               const T* x, T beta, T* y)
{
    core::require_array("x", x, distributed::x_side(*matrix, of_transpose).size());
    core::require_array("y", y, distributed::x_side(*matrix, !of_transpose).size());
    if (!matrix->runtime->shared_memory() && (engine::gpu_of(x) >= 0 || engine::gpu_of(y) >= 0)) {
        return distributed::apply_through_vectors(matrix, of_transpose, alpha, x, beta, y, nullptr);
    }
    return matrix->runtime->submit(
        [matrix, of_transpose, alpha, beta, source = distributed::Source<T>{x, nullptr},
         target = distributed::Target<T>{y, nullptr}](engine::Worker& worker, engine::Rendezvous& meeting) {
            distributed::apply_on(*matrix, worker, meeting, alpha, source, beta, target, nullptr, of_transpose);
        },
        [matrix, y, of_transpose] { distributed::finish_host_y(*matrix, y, of_transpose); },
        distributed::product_terms(*matrix, true));
}

/// Applies with arrays in GPU memory, in the order of a stream.
template <class T>
std::future<void> submit_apply(const std::shared_ptr<detail::MatrixState<T>>& matrix, bool of_transpose, T alpha,
                               const T* x, T beta, T* y, StreamRef stream)
{
    core::require_array("x", x, distributed::x_side(*matrix, of_transpose).size());
    core::require_array("y", y, distributed::x_side(*matrix, !of_transpose).size());
    const int gpu = distributed::gpu_of_operands(*matrix, of_transpose, x, y);
    auto& orders = matrix->runtime->caller_orders;
    auto order = orders.take(gpu, stream.handle, matrix->runtime->devices());
    auto done = distributed::apply_through_vectors(matrix, of_transpose, alpha, x, beta, y, order);
    orders.give_back(gpu, std::move(order));
    return done;
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
        },
        {}, distributed::product_terms(*matrix, false));
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

namespace {

std::shared_ptr<detail::RuntimeState> open_runtime(const RuntimeOptions& options)
{
    if (options.queue_limit < 0) {
        throw Error(ErrorCode::usage, fmt::format("queue_limit {} is below 0", options.queue_limit));
    }
    if (!(options.stall_seconds >= 0)) {
        throw Error(ErrorCode::usage, fmt::format("stall_seconds {} is not 0 or more", options.stall_seconds));
    }
    std::shared_ptr<detail::RuntimeState> state = node::open_devices(options);
    state->links = doctor::known_links(*state);
    if (state->workers.empty()) {
        return state;
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
    state->connection = transport::connect(state->workers, transports, doctor::tested_transports(*state));
    state->jobs = std::make_unique<engine::JobQueue>(
        state->workers, state->shared_memory(), [s = state.get()](std::uint64_t job) { s->give_up(job); },
        options.one_thread, options.queue_limit);
    if (options.stall_seconds > 0) {
        constexpr double longest = 1e9;
        const std::chrono::duration<double> limit(std::min(options.stall_seconds, longest));
        state->jobs->watch_for_stalls(std::chrono::ceil<engine::Clock::duration>(limit),
                                      [s = state.get()](const void* carrier) { return s->stalled(carrier); });
    }
    return state;
}

/// That of a runtime's devices, or of the healthy ones of them if some were lost.
std::shared_ptr<detail::RuntimeState> healthy(const std::shared_ptr<detail::RuntimeState>& runtime)
{
    const std::lock_guard one_at_a_time(detail::checked(runtime)->replacing);
    const auto state = detail::current(runtime);
    const auto& workers = state->workers;
    if (std::none_of(workers.begin(), workers.end(), [](const auto& worker) { return worker->device().lost(); })) {
        return state;
    }
    const auto next = open_runtime(node::without_lost(*state));
    const std::lock_guard lock(state->mutex);
    state->successor = next;
    return next;
}

template <class T, class View>
std::shared_ptr<detail::MatrixState<T>> redistribute_view(const std::shared_ptr<detail::RuntimeState>& runtime,
                                                          const detail::MatrixState<T>& matrix, const View& a)
{
    const Plan& plan = matrix.plan;
    if (a.rows != plan.rows || a.cols != plan.cols) {
        throw Error(ErrorCode::usage,
                    fmt::format("the matrix has {} rows and {} columns, the arrays are of one with {} "
                                "and {}",
                                plan.rows, plan.cols, a.rows, a.cols));
    }
    const auto target = healthy(runtime);
    return distributed::distribute_view(target, a, distributed::options_for(*target, matrix));
}

}  // namespace

Runtime::Runtime(const RuntimeOptions& options) : state_(open_runtime(options)) {}

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
    const auto state = detail::current(state_);
    std::lock_guard lock(state->mutex);
    std::vector<DeviceInfo> infos = state->infos;
    for (std::size_t i = 0; i < state->workers.size(); ++i) {
        infos[i].loss = state->workers[i]->device().loss();
    }
    return infos;
}

std::string Runtime::transport() const
{
    const auto state = detail::current(state_);
    return fmt::format("{} ({})", state->transport_name(), state->transport_reason());
}

template <class T>
DistributedMatrix<T> Runtime::distribute(const CsrView<T>& a, const DistributeOptions& options)
{
    return DistributedMatrix<T>(distributed::distribute_view(detail::current(state_), a, options));
}

template <class T>
DistributedMatrix<T> Runtime::distribute(const CscView<T>& a, const DistributeOptions& options)
{
    return DistributedMatrix<T>(distributed::distribute_view(detail::current(state_), a, options));
}

template <class T>
DistributedMatrix<T> Runtime::distribute(const CooView<T>& a, const DistributeOptions& options)
{
    return DistributedMatrix<T>(distributed::distribute_view(detail::current(state_), a, options));
}

template <class T>
DistributedMatrix<T> Runtime::distribute(const BsrView<T>& a, const DistributeOptions& options)
{
    return DistributedMatrix<T>(distributed::distribute_view(detail::current(state_), a, options));
}

template <class T>
void Runtime::redistribute(DistributedMatrix<T>& matrix)
{
    const auto& state = detail::checked(matrix.state_);
    matrix.state_ = distributed::redistribute<T>(healthy(state_), state);
}

template <class T>
void Runtime::redistribute(DistributedMatrix<T>& matrix, const CsrView<T>& a)
{
    matrix.state_ = redistribute_view<T>(state_, *detail::checked(matrix.state_), a);
}

template <class T>
void Runtime::redistribute(DistributedMatrix<T>& matrix, const CscView<T>& a)
{
    matrix.state_ = redistribute_view<T>(state_, *detail::checked(matrix.state_), a);
}

template <class T>
void Runtime::redistribute(DistributedMatrix<T>& matrix, const CooView<T>& a)
{
    matrix.state_ = redistribute_view<T>(state_, *detail::checked(matrix.state_), a);
}

template <class T>
void Runtime::redistribute(DistributedMatrix<T>& matrix, const BsrView<T>& a)
{
    matrix.state_ = redistribute_view<T>(state_, *detail::checked(matrix.state_), a);
}

template <class T>
Plan Runtime::plan(const CsrView<T>& a, const DistributeOptions& options) const
{
    return distributed::plan_view(*detail::current(state_), a, options);
}

template <class T>
Plan Runtime::plan(const CscView<T>& a, const DistributeOptions& options) const
{
    return distributed::plan_view(*detail::current(state_), a, options);
}

template <class T>
Plan Runtime::plan(const CooView<T>& a, const DistributeOptions& options) const
{
    return distributed::plan_view(*detail::current(state_), a, options);
}

template <class T>
Plan Runtime::plan(const BsrView<T>& a, const DistributeOptions& options) const
{
    return distributed::plan_view(*detail::current(state_), a, options);
}

void Runtime::synchronize()
{
    detail::current(state_)->submit([](engine::Worker&, engine::Rendezvous&) {}).get();
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
    engine::await(apply_async(alpha, x, beta, y), detail::checked(state_)->runtime->shared_memory());
}

template <class T>
std::future<void> DistributedMatrix<T>::apply_async(T alpha, const T* x, T beta, T* y)
{
    return submit_apply(detail::checked(state_), false, alpha, x, beta, y);
}

template <class T>
std::future<void> DistributedMatrix<T>::apply_async(T alpha, const T* x, T beta, T* y, StreamRef stream)
{
    return submit_apply(detail::checked(state_), false, alpha, x, beta, y, stream);
}

template <class T>
void DistributedMatrix<T>::apply(T alpha, const DistributedVector<T>& x, T beta, DistributedVector<T>& y)
{
    engine::await(apply_async(alpha, x, beta, y), detail::checked(state_)->runtime->shared_memory());
}

template <class T>
std::future<void> DistributedMatrix<T>::apply_async(T alpha, const DistributedVector<T>& x, T beta,
                                                    DistributedVector<T>& y)
{
    return submit_apply(detail::checked(state_), false, alpha, detail::checked(x.state_), beta,
                        detail::checked(y.state_));
}

template <class T>
std::future<void> DistributedMatrix<T>::apply_async(T alpha, const T* x, T beta, T* y, const JobOptions& options)
{
    const JobScope scope(options);
    return apply_async(alpha, x, beta, y);
}

template <class T>
std::future<void> DistributedMatrix<T>::apply_async(T alpha, const DistributedVector<T>& x, T beta,
                                                    DistributedVector<T>& y, const JobOptions& options)
{
    const JobScope scope(options);
    return apply_async(alpha, x, beta, y);
}

template <class T>
void DistributedMatrix<T>::apply_transposed(T alpha, const T* x, T beta, T* y)
{
    engine::await(apply_transposed_async(alpha, x, beta, y), detail::checked(state_)->runtime->shared_memory());
}

template <class T>
std::future<void> DistributedMatrix<T>::apply_transposed_async(T alpha, const T* x, T beta, T* y)
{
    distributed::prepare_apply(*detail::checked(state_), true);
    return submit_apply(state_, true, alpha, x, beta, y);
}

template <class T>
std::future<void> DistributedMatrix<T>::apply_transposed_async(T alpha, const T* x, T beta, T* y, StreamRef stream)
{
    distributed::prepare_apply(*detail::checked(state_), true);
    return submit_apply(state_, true, alpha, x, beta, y, stream);
}

template <class T>
void DistributedMatrix<T>::apply_transposed(T alpha, const DistributedVector<T>& x, T beta, DistributedVector<T>& y)
{
    engine::await(apply_transposed_async(alpha, x, beta, y), detail::checked(state_)->runtime->shared_memory());
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
void DistributedMatrix<T>::update_values(const T* values, StreamRef after)
{
    core::require_array("values", values, nnz());
    distributed::wait_for_caller("the array of values", values, nnz(), after);
    distributed::update_values(state_, values);
}

template <class T>
DistributedVector<T> DistributedMatrix<T>::make_x(Layout layout, Order order) const
{
    core::require_enumerator("layout", layout, Layout::replicated);
    core::require_enumerator("order", order, Order::kernel);
    const auto& matrix = detail::checked(state_);
    return DistributedVector<T>(distributed::make_vector(matrix, distributed::x_side(*matrix, false), layout, order));
}

template <class T>
DistributedVector<T> DistributedMatrix<T>::make_y(Order order) const
{
    core::require_enumerator("order", order, Order::kernel);
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

#define RMSP_INSTANTIATE(T)              \
    template class DistributedMatrix<T>; \
    template void Runtime::redistribute(DistributedMatrix<T>&);
#define RMSP_INSTANTIATE_FOR(T, View)                                                            \
    template DistributedMatrix<T> Runtime::distribute(const View<T>&, const DistributeOptions&); \
    template void Runtime::redistribute(DistributedMatrix<T>&, const View<T>&);                  \
    template Plan Runtime::plan(const View<T>&, const DistributeOptions&) const;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE_FOR, CsrView)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE_FOR, CscView)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE_FOR, CooView)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE_FOR, BsrView)

}  // namespace rmsp
