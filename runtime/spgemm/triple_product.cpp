#include <fmt/format.h>

#include <rmsp/spgemm.hpp>

#include "core/value_types.hpp"
#include "runtime/matrix/matrix_state.hpp"
#include "runtime/node/node.hpp"
#include "runtime/spgemm/product.hpp"

namespace rmsp {

template <class T>
TripleProduct<T>::TripleProduct(Runtime& runtime, const SpgemmOperand<T>& r, const SpgemmOperand<T>& a,
                                const SpgemmOperand<T>& p, const SpgemmOptions& options)
{
    open(detail::RuntimeAccess::state(runtime), r, a, p, options);
}

template <class T>
TripleProduct<T>::TripleProduct(const DistributedMatrix<T>& r, const DistributedMatrix<T>& a,
                                const DistributedMatrix<T>& p, const SpgemmOptions& options)
{
    open(detail::checked(detail::MatrixAccess::state(a))->runtime, r, a, p, options);
}

template <class T>
void TripleProduct<T>::open(const std::shared_ptr<detail::RuntimeState>& runtime, const SpgemmOperand<T>& r,
                            const SpgemmOperand<T>& a, const SpgemmOperand<T>& p, const SpgemmOptions& options,
                            bool once)
{
    outdated_ = a.on_devices() || p.on_devices();
    if (r.cols() != a.rows()) {
        throw Error(ErrorCode::usage,
                    fmt::format("R is {} x {} and A is {} x {}: the columns of R must be as many as the rows of A",
                                r.rows(), r.cols(), a.rows(), a.cols()));
    }
    SpgemmOptions whole = options;
    whole.prune_below = 0;
    ap_ = SparseProduct<T>(runtime, a, p, whole);
    if (once && ap_.plan().chunked()) {
        throw Error(ErrorCode::out_of_memory, "A P of R A P has no room on the devices");
    }
    ap_.compute();
    if (once) {
        detail::ProductAccess::state(ap_)->once = true;
        spgemm::finish(*detail::ProductAccess::state(ap_));
    }
    rap_ = SparseProduct<T>(runtime, r, ap_, options);
}

template <class T>
void TripleProduct<T>::renew(const T* a_values)
{
    if (a_values != nullptr) {
        ap_.update_values(a_values, nullptr);
    }
    if (a_values != nullptr || (outdated_ && !spgemm::is_current(*detail::ProductAccess::state(ap_)))) {
        ap_.compute();
    }
    rap_.compute();
    if (detail::ProductAccess::state(ap_)->once) {
        spgemm::finish(*detail::ProductAccess::state(rap_));
    }
}

template <class T>
CsrMatrix<T> TripleProduct<T>::compute(const T* a_values)
{
    renew(a_values);
    return rap_.download();
}

#define RMSP_INSTANTIATE(T) template class TripleProduct<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp
