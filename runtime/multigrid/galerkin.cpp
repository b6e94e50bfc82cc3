#include "runtime/multigrid/galerkin.hpp"

#include "core/value_types.hpp"
#include "runtime/matrix/matrix_state.hpp"
#include "runtime/spgemm/distribute.hpp"
#include "runtime/spgemm/product.hpp"

namespace rmsp::multigrid {
namespace {

using detail::MatrixAccess;

/// Whether there was room for it.
template <class F>
bool tries(const F& f)
{
    try {
        f();
        return true;
    } catch (const Error& error) {
        if (error.code() != ErrorCode::out_of_memory) {
            throw;
        }
        return false;
    }
}

/// Of a matrix of so many entries as a product holds it.
template <class T>
std::int64_t bytes_of(const SpgemmPlan& plan)
{
    return plan.c_nnz * static_cast<std::int64_t>(sizeof(T) + sizeof(std::int32_t)) +
           plan.rows * static_cast<std::int64_t>(sizeof(std::int64_t));
}

}  // namespace

template <class T>
GalerkinProduct<T>::GalerkinProduct(const DistributedMatrix<T>& r, const DistributedMatrix<T>& a,
                                    const DistributedMatrix<T>& p)
    : r_(r), a_(a), p_(p)
{
}

template <class T>
SpgemmOptions GalerkinProduct<T>::options() const
{
    SpgemmOptions options;
    options.determinism = MatrixAccess::state(a_)->options.determinism;
    return options;
}

template <class T>
void GalerkinProduct<T>::compute()
{
    slabs_ = 0;
    const auto as_a_whole = [&] {
        whole_ = detail::ProductAccess::triple_once<T>(MatrixAccess::state(a_)->runtime, r_, a_, p_, options());
        whole_->renew();
    };
    const auto in_slabs = [&] {
        whole_.reset();
        in_slabs_ = std::make_unique<spgemm::TripleInSlabs<T>>(MatrixAccess::state(r_), MatrixAccess::state(a_),
                                                               MatrixAccess::state(p_), options().determinism);
        slabs_ = in_slabs_->slabs();
    };
    const bool fits =
        spgemm::slabs_for(*MatrixAccess::state(r_), *MatrixAccess::state(a_), *MatrixAccess::state(p_)) == 1;
    if ((fits && tries(as_a_whole)) || tries(in_slabs)) {
        return;
    }
    // In runs of rows that are on the host.
    whole_ = TripleProduct<T>(r_, a_, p_, options());
    whole_->renew();
}

template <class T>
DistributedMatrix<T> GalerkinProduct<T>::distribute(const DistributeOptions& options,
                                                    const std::vector<std::int64_t>& first_rows)
{
    DistributedMatrix<T> coarse =
        in_slabs_ ? spgemm::distribute(MatrixAccess::state(a_)->runtime, *in_slabs_, options, first_rows)
                  : spgemm::distribute(detail::ProductAccess::state(whole_->product()), options, first_rows);
    whole_.reset();
    in_slabs_.reset();
    return coarse;
}

template <class T>
void GalerkinProduct<T>::renew(DistributedMatrix<T>& coarse)
{
    keeps_ = keeps_ && slabs_ == 0 && tries([&] { renew_kept(coarse); });
    if (keeps_) {
        return;
    }
    kept_.reset();
    compute();
    if (in_slabs_) {
        spgemm::renew(*MatrixAccess::state(a_)->runtime, *in_slabs_, coarse);
    } else {
        whole_->product().renew(coarse);
    }
    whole_.reset();
    in_slabs_.reset();
}

template <class T>
void GalerkinProduct<T>::renew_kept(DistributedMatrix<T>& coarse)
{
    if (!kept_) {
        kept_ = TripleProduct<T>(r_, a_, p_, options());
    }
    kept_->renew();
    kept_->product().renew(coarse);
}

template <class T>
std::int64_t GalerkinProduct<T>::device_bytes() const
{
    return kept_ ? bytes_of<T>(kept_->inner_plan()) + bytes_of<T>(kept_->outer_plan()) : 0;
}

#define RMSP_INSTANTIATE(T) template class GalerkinProduct<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::multigrid
