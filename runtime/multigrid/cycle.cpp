#include "core/value_types.hpp"
#include "runtime/multigrid/hierarchy.hpp"

namespace rmsp::multigrid {
namespace {

/// Sweeps on a last level that is not inverted.
constexpr int last_sweeps = 8;
/// Levels that may be visited again: each doubles what is queued.
constexpr std::size_t most_doubled = 8;

}  // namespace

template <class T>
void Hierarchy<T>::append(Sequence& sequence, const Vec<T>& x, const Vec<T>& b)
{
    const Cycle cycle = options_.cycle == "w" ? Cycle::w : options_.cycle == "f" ? Cycle::f : Cycle::v;
    append_cycle(sequence, 0, x, b, true, cycle);
}

template <class T>
void Hierarchy<T>::append_cycle(Sequence& sequence, std::size_t number, const Vec<T>& x, const Vec<T>& b,
                                bool from_zero, Cycle cycle)
{
    const Level<T>& level = levels_[number];
    if (number + 1 == levels_.size()) {
        if (inverse_) {
            sequence.multiply(*inverse_, b, x);
        } else {
            append_smoothing(sequence, level, x, b, from_zero, last_sweeps);
        }
        return;
    }
    append_smoothing(sequence, level, x, b, from_zero, options_.sweeps);
    append_residual(sequence, level, x, b);
    const Level<T>& next = levels_[number + 1];
    sequence.multiply(level.r, *level.residual, *next.b);
    append_cycle(sequence, number + 1, *next.x, *next.b, true, cycle);
    // A second visit pays only where there is something below that was not solved exactly.
    if (cycle != Cycle::v && number + 2 < levels_.size() && number < most_doubled) {
        append_cycle(sequence, number + 1, *next.x, *next.b, false, cycle == Cycle::f ? Cycle::v : cycle);
    }
    sequence.multiply(level.p, *next.x, x, T{1}, T{1});
    append_smoothing(sequence, level, x, b, false, options_.sweeps);
}

template <class T>
void Hierarchy<T>::append_smoothing(Sequence& sequence, const Level<T>& level, const Vec<T>& x, const Vec<T>& b,
                                    bool from_zero, int sweeps)
{
    for (int sweep = 0; sweep < sweeps; ++sweep) {
        if (from_zero && sweep == 0) {
            level.smoother->append(sequence, x, b);
        } else {
            append_residual(sequence, level, x, b);
            level.smoother->append(sequence, *level.correction, *level.residual);
            sequence.pass(x += *level.correction);
        }
    }
}

template <class T>
void Hierarchy<T>::append_residual(Sequence& sequence, const Level<T>& level, const Vec<T>& x, const Vec<T>& b)
{
    // A pass, which joins the one before it where that reads or writes the same vectors, and a product that adds to it.
    sequence.pass(*level.residual = b);
    sequence.multiply(level.a, x, *level.residual, T{-1}, T{1});
}

#define RMSP_INSTANTIATE(T)                                                                                            \
    template void Hierarchy<T>::append(Sequence&, const Vec<T>&, const Vec<T>&);                                       \
    template void Hierarchy<T>::append_cycle(Sequence&, std::size_t, const Vec<T>&, const Vec<T>&, bool, Cycle);       \
    template void Hierarchy<T>::append_smoothing(Sequence&, const Level<T>&, const Vec<T>&, const Vec<T>&, bool, int); \
    template void Hierarchy<T>::append_residual(Sequence&, const Level<T>&, const Vec<T>&, const Vec<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::multigrid
