#include "runtime/multigrid/cycle.hpp"

#include "core/value_types.hpp"

namespace rmsp::multigrid {

template <class T>
void append_product(Sequence& sequence, const Level<T>& level, const Vec<T>& x, const Vec<T>& y, T alpha, T beta)
{
    sequence.multiply(level.a, x, y, alpha, beta);
}

template <class T>
void append_restriction(Sequence& sequence, const Level<T>& level, const Vec<T>& residual, const Vec<T>& b)
{
    sequence.multiply(level.r, residual, b);
}

template <class T>
void append_prolongation(Sequence& sequence, const Level<T>& level, const Vec<T>& coarse, const Vec<T>& x, T beta)
{
    sequence.multiply(level.p, coarse, x, T{1}, beta);
}

template <class T>
void Hierarchy<T>::append(Sequence& sequence, const Vec<T>& x, const Vec<T>& b)
{
    CycleOverLevels<T, Level<T>>(levels_, inverse_, options_.sweeps)
        .append(sequence, x, b, cycle_of(options_), scalars_);
}

#define RMSP_INSTANTIATE(T) template void Hierarchy<T>::append(Sequence&, const Vec<T>&, const Vec<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::multigrid
