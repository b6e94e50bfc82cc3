#include <fmt/format.h>

#include <rmsp/spgemm.hpp>

#include "core/device_kind.hpp"
#include "runtime/matrix/caller_matrix.hpp"
#include "runtime/matrix/matrix_state.hpp"
#include "runtime/node/node.hpp"
#include "runtime/spgemm/distribute.hpp"
#include "runtime/spgemm/download.hpp"
#include "runtime/spgemm/matrix_factor.hpp"
#include "runtime/spgemm/measure.hpp"
#include "runtime/spgemm/plan.hpp"
#include "runtime/spgemm/product.hpp"
#include "runtime/spgemm/product_factor.hpp"

namespace rmsp {
namespace {

template <class T>
detail::ProductState<T>& computed(const std::shared_ptr<detail::ProductState<T>>& product)
{
    detail::ProductState<T>& state = spgemm::checked(product);
    if (!state.computed) {
        throw Error(ErrorCode::usage, "SparseProduct::download() before compute(): C has no values yet");
    }
    return state;
}

}  // namespace

template <class T>
SpgemmOperand<T>::SpgemmOperand(const DistributedMatrix<T>& matrix)
    : matrix_(detail::checked(detail::MatrixAccess::state(matrix)))
{
}

template <class T>
SpgemmOperand<T>::SpgemmOperand(const SparseProduct<T>& product) : product_(product.state_)
{
    spgemm::checked(product_);
}

template <class T>
std::int64_t SpgemmOperand<T>::rows() const
{
    return matrix_ ? matrix_->plan.rows : product_ ? product_->plan.rows : view_.rows;
}

template <class T>
std::int64_t SpgemmOperand<T>::cols() const
{
    return matrix_ ? matrix_->plan.cols : product_ ? product_->plan.cols : view_.cols;
}

template <class T>
SparseProduct<T>::SparseProduct(Runtime& runtime, const SpgemmOperand<T>& a, const SpgemmOperand<T>& b,
                                const SpgemmOptions& options)
    : SparseProduct(detail::checked(runtime.state_), a, b, options)
{
}

template <class T>
SparseProduct<T>::SparseProduct(const std::shared_ptr<detail::RuntimeState>& runtime, const SpgemmOperand<T>& a,
                                const SpgemmOperand<T>& b, const SpgemmOptions& options)
{
    detail::RuntimeState& devices = *runtime;
    devices.require_live();
    auto state = std::make_shared<detail::ProductState<T>>(static_cast<std::size_t>(devices.devices()));
    state->runtime = runtime;
    const auto made_of = [&](const SpgemmOperand<T>& operand) -> std::shared_ptr<detail::MatrixState<T>> {
        if (operand.on_devices() || !distributed::in_gpu_memory(devices, operand.view_.values)) {
            return nullptr;
        }
        DistributeOptions by_rows;
        by_rows.alignment = RowAlignment::row;
        by_rows.balance = Balance::nonzeros;
        by_rows.exchange = Exchange::ranges;
        by_rows.after = options.after;
        return distributed::distribute_view(runtime, operand.view_, by_rows);
    };
    state->made_a = made_of(a);
    state->made_b = made_of(b);
    const auto resident = [&](const SpgemmOperand<T>& operand, const auto& made, const char* name) {
        return made               ? spgemm::matrix_factor(devices, made, name)
               : operand.matrix_  ? spgemm::matrix_factor(devices, operand.matrix_, name)
               : operand.product_ ? spgemm::product_factor(devices, operand.product_, name)
                                  : nullptr;
    };
    spgemm::Factors<T>& factors = state->factors;
    distributed::HostIndices indices(devices);
    const auto in_place = [&](const SpgemmOperand<T>& operand, const auto& made) {
        return made || operand.on_devices() ? CsrView<T>{} : indices(operand.view_);
    };
    factors.a = in_place(a, state->made_a);
    factors.b = in_place(b, state->made_b);
    state->kept = indices.take();
    factors.options = options;
    factors.options.after.reset();
    factors.resident_a = resident(a, state->made_a, "A");
    factors.resident_b = resident(b, state->made_b, "B");
    spgemm::build(*state);
    state_ = std::move(state);
}

template <class T>
SpgemmPlan SparseProduct<T>::plan(const Runtime& runtime, const CsrView<T>& a, const CsrView<T>& b,
                                  const SpgemmOptions& options)
{
    std::vector<std::int64_t> limits;
    for (const DeviceInfo& info : runtime.devices()) {
        limits.push_back(spgemm::memory_limit(options, core::shares_host_memory(info.kind) ? 0 : info.memory_bytes));
    }
    spgemm::RowWork work;
    return spgemm::plan_product(*detail::checked(runtime.state_), a, b, options, nullptr, limits, work, nullptr);
}

template <class T>
const SpgemmPlan& SparseProduct<T>::plan() const
{
    return spgemm::checked(state_).plan;
}

template <class T>
std::int64_t SparseProduct<T>::rows() const
{
    return spgemm::checked(state_).plan.rows;
}

template <class T>
std::int64_t SparseProduct<T>::cols() const
{
    return spgemm::checked(state_).plan.cols;
}

template <class T>
std::int64_t SparseProduct<T>::nnz() const
{
    return spgemm::checked(state_).plan.c_nnz;
}

template <class T>
void SparseProduct<T>::compute(T alpha)
{
    spgemm::compute(spgemm::checked(state_), alpha);
}

template <class T>
void SparseProduct<T>::update_values(const T* a_values, const T* b_values)
{
    spgemm::update_values(spgemm::checked(state_), a_values, b_values);
}

template <class T>
void SparseProduct<T>::update_values(const T* a_values, const T* b_values, StreamRef after)
{
    const SpgemmPlan& plan = spgemm::checked(state_).plan;
    if (a_values != nullptr) {
        distributed::wait_for_caller("the array of A's values", a_values, plan.a_nnz, after);
    }
    if (b_values != nullptr) {
        distributed::wait_for_caller("the array of B's values", b_values, plan.b_nnz, after);
    }
    update_values(a_values, b_values);
}

template <class T>
CsrMatrix<T> SparseProduct<T>::download() const
{
    detail::ProductState<T>& state = computed(state_);
    CsrMatrix<T> c = spgemm::download(state);
    const double threshold = state.factors.options.prune_below;
    return threshold > 0 ? pruned<T>(c.view(), threshold) : std::move(c);
}

template <class T>
void SparseProduct<T>::download(std::int64_t* row_ptr, std::int32_t* col_idx, T* values) const
{
    spgemm::download(computed(state_), spgemm::CArrays<T>{row_ptr, col_idx, values});
}

template <class T>
std::vector<PhaseTimes> SparseProduct<T>::phases() const
{
    return spgemm::checked(state_).phases;
}

template <class T>
std::vector<Measurement> SparseProduct<T>::measure(std::int64_t warmup, std::int64_t iterations, T alpha)
{
    return spgemm::measure(spgemm::checked(state_), warmup, iterations, alpha);
}

template <class T>
DistributedMatrix<T> SparseProduct<T>::distribute(const DistributeOptions& options) const
{
    return spgemm::distribute(state_, options);
}

template <class T>
void SparseProduct<T>::renew(DistributedMatrix<T>& matrix) const
{
    spgemm::renew(state_, matrix);
}

template <class T>
CsrMatrix<T> multiply(Runtime& runtime, const CsrView<T>& a, const CsrView<T>& b, const SpgemmOptions& options, T alpha)
{
    SparseProduct<T> product(runtime, a, b, options);
    product.compute(alpha);
    return product.download();
}

template <class T>
CsrMatrix<T> multiply_add(Runtime& runtime, T alpha, const CsrView<T>& a, const CsrView<T>& b, T beta,
                          const CsrView<T>& d, const SpgemmOptions& options)
{
    if (d.rows != a.rows || d.cols != b.cols) {
        throw Error(ErrorCode::usage, fmt::format("D is {} x {}, but A B is {} x {}", d.rows, d.cols, a.rows, b.cols));
    }
    SpgemmOptions whole = options;
    whole.prune_below = 0;
    const CsrMatrix<T> product = multiply(runtime, a, b, whole, alpha);
    CsrMatrix<T> sum = add(T{1}, product.view(), beta, d);
    return options.prune_below > 0 ? pruned<T>(sum.view(), options.prune_below) : std::move(sum);
}

#define RMSP_INSTANTIATE(T)                                                                                     \
    template class SpgemmOperand<T>;                                                                            \
    template class SparseProduct<T>;                                                                            \
    template CsrMatrix<T> multiply(Runtime&, const CsrView<T>&, const CsrView<T>&, const SpgemmOptions&, T);    \
    template CsrMatrix<T> multiply_add(Runtime&, T, const CsrView<T>&, const CsrView<T>&, T, const CsrView<T>&, \
                                       const SpgemmOptions&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp
