#include "core/value_types.hpp"
#include "runtime/multigrid/linked_hierarchy.hpp"
#include "runtime/multigrid/options.hpp"
#include "runtime/multigrid/smoothing.hpp"

namespace rmsp::multigrid {

using detail::GhostedAccess;

template <class T>
void LinkedHierarchy<T>::append(Sequence& sequence, const Vec<T>& x, const Vec<T>& b) const
{
    append_cycle(sequence, 0, x, b, true, options_.cycle.front());
}

template <class T>
void LinkedHierarchy<T>::append_cycle(Sequence& sequence, std::size_t number, const Vec<T>& x, const Vec<T>& b,
                                      bool from_zero, char cycle) const
{
    const LinkedLevel<T>& level = levels_[number];
    if (number + 1 == levels_.size()) {
        if (inverse_) {
            sequence.multiply(*inverse_, b, x);
        } else {
            append_smoothing(sequence, level, x, b, from_zero, last_sweeps);
        }
        return;
    }
    const LinkedLevel<T>& next = levels_[number + 1];
    const auto& p = GhostedAccess::state(level.p);
    if (level.gathers) {
        ghosted::append(p, sequence, b, *next.b, T{1}, T{0}, true);
        append_cycle(sequence, number + 1, *next.x, *next.b, true, cycle);
        ghosted::append(p, sequence, *next.x, x, T{1}, T{0}, false);
        return;
    }
    append_smoothing(sequence, level, x, b, from_zero, options_.sweeps);
    append_residual(sequence, level, x, b);
    ghosted::append(p, sequence, *level.residual, *next.b, T{1}, T{0}, true);
    append_cycle(sequence, number + 1, *next.x, *next.b, true, cycle);
    // A second visit pays only where there is something below that was not solved exactly.
    if (cycle != 'v' && number + 2 < levels_.size() && !next.gathers && number < most_doubled) {
        append_cycle(sequence, number + 1, *next.x, *next.b, false, cycle == 'f' ? 'v' : cycle);
    }
    ghosted::append(p, sequence, *next.x, x, T{1}, T{1}, false);
    append_smoothing(sequence, level, x, b, false, options_.sweeps);
}

template <class T>
void LinkedHierarchy<T>::append_smoothing(Sequence& sequence, const LinkedLevel<T>& level, const Vec<T>& x,
                                          const Vec<T>& b, bool from_zero, int sweeps) const
{
    append_sweeps(sequence, level, x, b, from_zero, sweeps, [&] { append_residual(sequence, level, x, b); });
}

template <class T>
void LinkedHierarchy<T>::append_residual(Sequence& sequence, const LinkedLevel<T>& level, const Vec<T>& x,
                                         const Vec<T>& b) const
{
    sequence.pass(*level.residual = b);
    ghosted::append(GhostedAccess::state(level.a), sequence, x, *level.residual, T{-1}, T{1}, false);
}

#define RMSP_INSTANTIATE(T)                                                                                            \
    template void LinkedHierarchy<T>::append(Sequence&, const Vec<T>&, const Vec<T>&) const;                           \
    template void LinkedHierarchy<T>::append_cycle(Sequence&, std::size_t, const Vec<T>&, const Vec<T>&, bool, char)   \
        const;                                                                                                         \
    template void LinkedHierarchy<T>::append_smoothing(Sequence&, const LinkedLevel<T>&, const Vec<T>&, const Vec<T>&, \
                                                       bool, int) const;                                               \
    template void LinkedHierarchy<T>::append_residual(Sequence&, const LinkedLevel<T>&, const Vec<T>&, const Vec<T>&)  \
        const;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::multigrid
