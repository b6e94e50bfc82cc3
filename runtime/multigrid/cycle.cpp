#include "core/value_types.hpp"
#include "runtime/multigrid/hierarchy.hpp"
#include "runtime/multigrid/options.hpp"
#include "runtime/multigrid/smoothing.hpp"

namespace rmsp::multigrid {

template <class T>
void Hierarchy<T>::append(Sequence& sequence, const Vec<T>& x, const Vec<T>& b)
{
    const Cycle cycle = options_.cycle == "w"   ? Cycle::w
                        : options_.cycle == "f" ? Cycle::f
                        : options_.cycle == "k" ? Cycle::k
                                                : Cycle::v;
    if (cycle != Cycle::k) {
        append_cycle(sequence, 0, x, b, true, cycle);
        return;
    }
    // Its scalars are its own, so that what the caller's sequence has room for does not depend on the levels.
    Sequence own(*scalars_);
    append_cycle(own, 0, x, b, true, cycle);
    sequence.insert(own);
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
    if (!next.krylov.empty()) {
        append_krylov(sequence, number + 1);
    } else {
        append_cycle(sequence, number + 1, *next.x, *next.b, true, cycle);
    }
    // A second visit pays only where there is something below that was not solved exactly.
    if ((cycle == Cycle::w || cycle == Cycle::f) && number + 2 < levels_.size() && number < most_doubled) {
        append_cycle(sequence, number + 1, *next.x, *next.b, false, cycle == Cycle::f ? Cycle::v : cycle);
    }
    sequence.multiply(level.p, *next.x, x, T{1}, T{1});
    append_smoothing(sequence, level, x, b, false, options_.sweeps);
}

/// Two iterations of flexible conjugate gradients with the cycle as preconditioner, from nothing; b becomes the
/// residual of the first. (Y. Notay, P. S. Vassilevski: Recursive Krylov-based multigrid cycles, Numer. Linear Algebra
/// Appl. 15, 2008, algorithm 3.2, always with the second iteration, since what is queued cannot depend on residuals)
template <class T>
void Hierarchy<T>::append_krylov(Sequence& sequence, std::size_t number)
{
    const Level<T>& level = levels_[number];
    const Vec<T>& c = level.krylov[0];
    const Vec<T>& ac = level.krylov[1];
    const Vec<T>& d = level.krylov[2];
    const Vec<T>& ad = level.krylov[3];
    const Scalar& energy = level.krylov_scalars[0];
    const Scalar& along = level.krylov_scalars[1];
    const Scalar& cross = level.krylov_scalars[2];
    const Scalar& rest = level.krylov_scalars[3];
    const Scalar& second = level.krylov_scalars[4];
    // 0 / 0 is 0; what is left of d beside c is no less than rounding makes it.
    constexpr double smallest = 1e-300;
    constexpr double rounding = 1e-10;
    append_cycle(sequence, number, c, *level.b, true, Cycle::k);
    sequence.multiply(level.a, c, ac);
    sequence.pass(energy = dot(c, ac), along = dot(c, *level.b), energy = max(energy, smallest),
                  along = along / energy);
    sequence.pass(*level.b -= along * ac);
    append_cycle(sequence, number, d, *level.b, true, Cycle::k);
    sequence.multiply(level.a, d, ad);
    sequence.pass(cross = dot(d, ac), rest = dot(d, ad), second = dot(d, *level.b),
                  rest = max(max(rest - cross * cross / energy, rounding * ScalarExpression(rest)), smallest),
                  second = second / rest, along = along - cross * second / energy);
    sequence.pass(*level.x = along * c + second * d);
}

template <class T>
void Hierarchy<T>::append_smoothing(Sequence& sequence, const Level<T>& level, const Vec<T>& x, const Vec<T>& b,
                                    bool from_zero, int sweeps)
{
    append_sweeps(sequence, level, x, b, from_zero, sweeps, [&] { append_residual(sequence, level, x, b); });
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
    template void Hierarchy<T>::append_krylov(Sequence&, std::size_t);                                                 \
    template void Hierarchy<T>::append_smoothing(Sequence&, const Level<T>&, const Vec<T>&, const Vec<T>&, bool, int); \
    template void Hierarchy<T>::append_residual(Sequence&, const Level<T>&, const Vec<T>&, const Vec<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::multigrid
