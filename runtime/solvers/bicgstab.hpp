#pragma once

#include "runtime/solvers/recipe.hpp"

namespace rmsp::solvers {

/// Stabilised biconjugate gradients (H. A. van der Vorst 1992), preconditioned from the right, so that residuals are
/// those of A x = b.
template <class T>
void bicgstab(Recipe<T>& s)
{
    auto [r, shadow, p, v, t] = s.template vectors<5>();
    auto [rho, rho_new, sigma, ts, tt, alpha, beta, omega, beta_omega, rr] = s.template scalars<10>();
    const Vec<T> mp = s.preconditioned(p);
    const Vec<T> mr = s.preconditioned(r);

    s.residual(s.start, r);
    s.start.pass(shadow = r, p = r, rr = dot(r, r), rho = rr, s.check(sqrt(rr)));

    Sequence& step = s.next_iteration();
    s.precondition(step, mp, p);
    s.multiply(step, mp, v);
    step.pass(sigma = dot(shadow, v), s.need_nonzero(sigma), alpha = rho / sigma);
    step.pass(s.x += alpha * mp, r -= alpha * v);
    s.precondition(step, mr, r);
    s.multiply(step, mr, t);
    // r = 0 half-way: t = 0, and omega too.
    step.pass(ts = dot(t, r), tt = dot(t, t), omega = ts / max(tt, smallest));
    step.pass(s.x += omega * mr, r -= omega * t, rho_new = dot(shadow, r), rr = dot(r, r), s.check(sqrt(rr)),
              s.need_nonzero(omega), s.need_nonzero(rho_new), beta = (rho_new / rho) * (alpha / omega),
              beta_omega = beta * omega, rho = rho_new);
    step.pass(p = r + beta * p - beta_omega * v);
}

}  // namespace rmsp::solvers
