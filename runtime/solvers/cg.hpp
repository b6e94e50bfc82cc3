#pragma once

#include "runtime/solvers/recipe.hpp"

namespace rmsp::solvers {

/// Conjugate gradients with a preconditioner (M. R. Hestenes, E. Stiefel 1952; Y. Saad, Iterative Methods for Sparse
/// Linear Systems, algorithm 9.1). Without one 72 bytes a row of doubles move besides the product.
template <class T>
void cg(Recipe<T>& s)
{
    auto [r, p, q] = s.template vectors<3>();
    auto [rho, rho_new, pq, alpha, beta, rr] = s.template scalars<6>();
    const Vec<T> z = s.preconditioned(r);

    s.residual(s.start, r);
    s.precondition(s.start, z, r);
    s.start.pass(p = z, rho = dot(r, z), rr = dot(r, r), s.check(sqrt(rr)));

    Sequence& step = s.next_iteration();
    s.multiply(step, p, q);
    step.pass(pq = dot(p, q), s.need_positive(pq), alpha = rho / pq);
    step.pass(s.x += alpha * p, r -= alpha * q);
    s.precondition(step, z, r);
    step.pass(rho_new = dot(r, z), rr = dot(r, r), beta = rho_new / rho, rho = rho_new, s.check(sqrt(rr)));
    step.pass(p = z + beta * p);
}

}  // namespace rmsp::solvers
