#pragma once

#include "runtime/solvers/recipe.hpp"

namespace rmsp::solvers {

/// Iterative refinement (J. H. Wilkinson 1963): x += relaxation M (b - A x), with a residual that is computed anew each
/// time. With M an inner solver of lower precision the result has the precision of the residual; with any other
/// preconditioner, or none, this is Richardson's iteration.
template <class T>
void ir(Recipe<T>& s)
{
    const Vec<T> r = s.vector();
    auto [rr, along] = s.template scalars<2>();
    const Vec<T> z = s.preconditioned(r);

    s.residual(s.start, r);
    s.start.pass(rr = dot(r, r), along = s.options.relaxation, s.check(sqrt(rr)));

    Sequence& step = s.next_iteration();
    s.precondition(step, z, r);
    step.pass(s.x += along * z);
    s.residual(step, r);
    step.pass(rr = dot(r, r), s.check(sqrt(rr)));
}

}  // namespace rmsp::solvers
