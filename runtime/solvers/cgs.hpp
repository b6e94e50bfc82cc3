#pragma once

#include "runtime/solvers/recipe.hpp"

namespace rmsp::solvers {

/// Conjugate gradients squared (P. Sonneveld 1989), preconditioned from the right.
template <class T>
void cgs(Recipe<T>& s)
{
    auto [r, shadow, u, p, q, v] = s.template vectors<6>();
    auto [rho, rho_new, sigma, alpha, beta, beta_beta, rr] = s.template scalars<7>();
    const Vec<T> mp = s.preconditioned(p);
    const Vec<T> mu = s.preconditioned(u);

    s.residual(s.start, r);
    s.start.pass(shadow = r, u = r, p = r);
    s.start.pass(rr = dot(r, r), rho = rr, s.check(sqrt(rr)));

    Sequence& step = s.next_iteration();
    s.precondition(step, mp, p);
    s.multiply(step, mp, v);
    step.pass(sigma = dot(shadow, v), s.need_nonzero(sigma), alpha = rho / sigma);
    step.pass(q = u - alpha * v, u += q.expression());
    s.precondition(step, mu, u);
    s.multiply(step, mu, v);
    step.pass(s.x += alpha * mu, r -= alpha * v, rho_new = dot(shadow, r), rr = dot(r, r), s.check(sqrt(rr)),
              s.need_nonzero(rho_new), beta = rho_new / rho, beta_beta = beta * beta, rho = rho_new);
    step.pass(u = r + beta * q, p = u + beta * q + beta_beta * p);
}

}  // namespace rmsp::solvers
