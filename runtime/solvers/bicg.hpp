#pragma once

#include "runtime/solvers/recipe.hpp"

namespace rmsp::solvers {

/// Biconjugate gradients (R. Fletcher 1976; Y. Saad, Iterative Methods for Sparse Linear Systems, algorithm 7.3): A and
/// A^T in each iteration, and M and M^T.
template <class T>
void bicg(Recipe<T>& s)
{
    auto [r, shadow, p, shadow_p, q, shadow_q] = s.template vectors<6>();
    auto [rho, rho_new, sigma, alpha, beta, rr] = s.template scalars<6>();
    const Vec<T> z = s.preconditioned(r);
    const Vec<T> shadow_z = s.preconditioned(shadow);

    s.residual(s.start, r);
    s.start.pass(shadow = r);
    s.precondition(s.start, z, r);
    s.precondition_transposed(s.start, shadow_z, shadow);
    s.start.pass(p = z, shadow_p = shadow_z, rho = dot(z, shadow), rr = dot(r, r), s.check(sqrt(rr)),
                 s.need_nonzero(rho));

    Sequence& step = s.next_iteration();
    s.multiply(step, p, q);
    s.multiply_transposed(step, shadow_p, shadow_q);
    step.pass(sigma = dot(shadow_p, q), s.need_nonzero(sigma), alpha = rho / sigma);
    step.pass(s.x += alpha * p, r -= alpha * q, shadow -= alpha * shadow_q);
    s.precondition(step, z, r);
    s.precondition_transposed(step, shadow_z, shadow);
    step.pass(rho_new = dot(z, shadow), rr = dot(r, r), s.check(sqrt(rr)), s.need_nonzero(rho_new),
              beta = rho_new / rho, rho = rho_new);
    step.pass(p = z + beta * p, shadow_p = shadow_z + beta * shadow_p);
}

}  // namespace rmsp::solvers
