#pragma once

#include "runtime/solvers/recipe.hpp"

namespace rmsp::solvers {

/// Conjugate gradients with one group of inner products an iteration (A. T. Chronopoulos, C. W. Gear, s-step iterative
/// methods for symmetric linear systems, 1989): devices wait for each other once, after the product, at the cost of one
/// more vector and of one product more than iterations.
template <class T>
void cg_single(Recipe<T>& s)
{
    auto [r, p, w, q] = s.template vectors<4>();  // w = A u, q = A p
    auto [gamma, gamma_new, delta, pq, alpha, beta, rr] = s.template scalars<7>();
    const Vec<T> u = s.preconditioned(r);

    s.residual(s.start, r);
    s.precondition(s.start, u, r);
    s.multiply(s.start, u, w);
    s.start.pass(gamma = dot(r, u), delta = dot(w, u), rr = dot(r, r), s.check(sqrt(rr)), s.need_positive(delta),
                 alpha = gamma / delta, beta = 0.0);

    Sequence& step = s.next_iteration();
    step.pass(p = u + beta * p, q = w + beta * q, s.x += alpha * p);
    step.pass(r -= alpha * q);
    s.precondition(step, u, r);
    s.multiply(step, u, w);
    step.pass(gamma_new = dot(r, u), delta = dot(w, u), rr = dot(r, r), beta = gamma_new / gamma,
              pq = delta - beta * (gamma_new / alpha), gamma = gamma_new, alpha = gamma / pq, s.check(sqrt(rr)),
              s.need_positive(pq));
}

}  // namespace rmsp::solvers
