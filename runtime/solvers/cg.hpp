#pragma once

#include "runtime/solvers/recipe.hpp"

namespace rmsp::solvers {

/// Conjugate gradients with a preconditioner (M. R. Hestenes, E. Stiefel 1952; Y. Saad, Iterative Methods for Sparse
/// Linear Systems, algorithm 9.1). x is updated in the pass that makes the next direction of the one that it needs, so
/// that 64 bytes a row of doubles move besides the product.
template <class T>
void cg(Recipe<T>& s)
{
    auto [r, p, q] = s.template vectors<3>();
    auto [rho, rho_new, pq, alpha, beta, rr, pending] = s.template scalars<7>();
    const Vec<T> z = s.preconditioned(r);

    s.residual(s.start, r);
    s.precondition(s.start, z, r);
    s.start.pass(p = z, rho = dot(r, z), rr = dot(r, r), pending = 0.0, s.check(sqrt(rr)));

    Sequence& step = s.next_iteration();
    s.multiply(step, p, q);
    step.pass(pq = dot(p, q), s.need_positive(pq), alpha = rho / pq);
    step.pass(r -= alpha * q);
    s.precondition(step, z, r);
    step.pass(rho_new = dot(r, z), rr = dot(r, r), beta = rho_new / rho, rho = rho_new, pending = alpha,
              s.check(sqrt(rr)));
    step.pass(s.x += alpha * p, p = z + beta * p, pending = 0.0);

    // Where the iteration has stopped between the two.
    s.finish.pass_always(s.x += pending * p, pending = 0.0);
}

}  // namespace rmsp::solvers
