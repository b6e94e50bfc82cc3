#pragma once

#include "runtime/solvers/recipe.hpp"

namespace rmsp::solvers {

/// Flexible conjugate gradients: the preconditioner may differ from one iteration to the next, as one that iterates
/// itself does (G. H. Golub, Q. Ye, Inexact preconditioned conjugate gradient method with inner-outer iteration, 1999).
/// beta = (z', r' - r) / (z, r), where r' - r is -alpha q.
template <class T>
void fcg(Recipe<T>& s)
{
    auto [r, p, q] = s.template vectors<3>();
    auto [rho, rho_new, zq, pq, alpha, beta, rr] = s.template scalars<7>();
    const Vec<T> z = s.preconditioned(r);

    s.residual(s.start, r);
    s.precondition(s.start, z, r);
    s.start.pass(p = z, rho = dot(r, z), rr = dot(r, r), s.check(sqrt(rr)));

    Sequence& step = s.next_iteration();
    s.multiply(step, p, q);
    step.pass(pq = dot(p, q), s.need_positive(pq), alpha = rho / pq);
    step.pass(s.x += alpha * p, r -= alpha * q);
    s.precondition(step, z, r);
    step.pass(rho_new = dot(r, z), zq = dot(z, q), rr = dot(r, r), beta = 0.0 - alpha * zq / rho, rho = rho_new,
              s.check(sqrt(rr)));
    step.pass(p = z + beta * p);
}

}  // namespace rmsp::solvers
