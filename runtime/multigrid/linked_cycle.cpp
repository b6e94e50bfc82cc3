#include "core/value_types.hpp"
#include "runtime/multigrid/cycle.hpp"
#include "runtime/multigrid/linked_hierarchy.hpp"

namespace rmsp::multigrid {

using detail::GhostedAccess;

template <class T>
void append_product(Sequence& sequence, const LinkedLevel<T>& level, const Vec<T>& x, const Vec<T>& y, T alpha, T beta)
{
    ghosted::append(GhostedAccess::state(level.a), sequence, x, y, alpha, beta, false);
}

template <class T>
void append_restriction(Sequence& sequence, const LinkedLevel<T>& level, const Vec<T>& residual, const Vec<T>& b)
{
    ghosted::append(GhostedAccess::state(level.p), sequence, residual, b, T{1}, T{0}, true);
}

template <class T>
void append_prolongation(Sequence& sequence, const LinkedLevel<T>& level, const Vec<T>& coarse, const Vec<T>& x, T beta)
{
    ghosted::append(GhostedAccess::state(level.p), sequence, coarse, x, T{1}, beta, false);
}

template <class T>
void LinkedHierarchy<T>::append(Sequence& sequence, const Vec<T>& x, const Vec<T>& b)
{
    CycleOverLevels<T, LinkedLevel<T>>(levels_, inverse_, options_.sweeps)
        .append(sequence, x, b, cycle_of(options_), scalars_);
}

#define RMSP_INSTANTIATE(T) template void LinkedHierarchy<T>::append(Sequence&, const Vec<T>&, const Vec<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::multigrid
