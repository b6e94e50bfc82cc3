#include "core/clock.hpp"
#include "core/value_types.hpp"
#include "runtime/matrix/update.hpp"
#include "runtime/multigrid/linked_hierarchy.hpp"

namespace rmsp::multigrid {

template <class T>
void LinkedHierarchy<T>::renew()
{
    const auto began = core::Clock::now();
    const auto update = [](const DistributedMatrix<T>& matrix, const CsrMatrix<T>& values) {
        if (values.nnz() > 0) {
            distributed::update_values(detail::MatrixAccess::state(matrix), values.values.data());
        }
    };
    WholeColumns<T> rows = download_first();
    for (std::size_t i = 0; i < levels_.size(); ++i) {
        LinkedLevel<T>& level = levels_[i];
        if (level.smoother) {
            update(level.smoothed, smoothed_part(level, rows));
            level.smoother->renew();
        }
        if (i + 1 == levels_.size()) {
            break;
        }
        if (level.transfer && !options_.keep_interpolation) {
            level.transfer->renew(rows);
            level.p.update_values(level.transfer->p.values.data());
        }
        find_sign(level, rows);
        const WholeColumns<T> p = level.transfer ? level.transfer->p : identity(level);
        if (level.galerkin) {
            level.galerkin->renew(rows, p);
        } else {
            level.galerkin = make_galerkin(level, rows, p, levels_[i + 1].first_rows);
        }
        rows = level.galerkin->coarse();
        levels_[i + 1].a.update_values(rows.values.data());
    }
    if (inverse_) {
        update(*inverse_, inverse_of(rows));
    }
    describe(core::seconds_since(began));
}

template <class T>
void LinkedHierarchy<T>::rebuild()
{
    const GhostedMatrix<T> matrix = levels_.front().a;
    *this = LinkedHierarchy(matrix, numbers_, links_.processes(), method_, options_, make_smoother_);
}

#define RMSP_INSTANTIATE(T)                    \
    template void LinkedHierarchy<T>::renew(); \
    template void LinkedHierarchy<T>::rebuild();
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::multigrid
