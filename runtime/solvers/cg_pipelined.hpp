#pragma once

#include <limits>

#include "runtime/solvers/recipe.hpp"

namespace rmsp::solvers {

/// Iterations of pipelined conjugate gradients from one replacement of its vectors to the next.
inline constexpr int pipelined_turn = 50;

/// Pipelined conjugate gradients (P. Ghysels, W. Vanroose, Hiding global synchronization latency in the preconditioned
/// conjugate gradient algorithm, 2014): one group of inner products an iteration, summed beside its preconditioner and
/// product, at the cost of four more vectors. What cg computes by products and M are recurrences here, whose rounding
/// errors grow; so once a turn they are replaced by what they stand for (S. Cools, E. F. Yetkin, E. Agullo, L. Giraud,
/// W. Vanroose, Analyzing the effect of local rounding error propagation on the maximal attainable accuracy of the
/// pipelined conjugate gradient method, 2018), with four products more.
template <class T>
void cg_pipelined(Recipe<T>& s)
{
    auto [r, w, n, p, v, z] = s.template vectors<6>();  // w = A u, n = A m, v = A p, z = A q
    auto [gamma, gamma_new, delta, pq, alpha, beta, rr] = s.template scalars<7>();
    const Vec<T> u = s.preconditioned(r);
    const Vec<T> m = s.preconditioned(w);
    const Vec<T> q = s.preconditioned(v);

    const auto sum_beside_product = [&](Sequence& sequence) {
        sequence.begin_pass(gamma_new = dot(r, u), delta = dot(w, u), rr = dot(r, r), beta = gamma_new / gamma,
                            pq = delta - beta * (gamma_new / alpha), gamma = gamma_new, alpha = gamma / pq,
                            s.check(sqrt(rr)), s.need_positive(pq));
        s.precondition(sequence, m, w);
        s.multiply(sequence, m, n);
        sequence.end_pass();
    };

    s.residual(s.start, r);
    s.precondition(s.start, u, r);
    s.multiply(s.start, u, w);
    s.start.pass(gamma = std::numeric_limits<double>::infinity(), alpha = 1.0);  // so that beta = 0
    sum_beside_product(s.start);

    Sequence step = s.next_iteration();
    step.pass(p = u + beta * p, v = w + beta * v, s.x += alpha * p);
    if (s.preconditioner != nullptr) {
        step.pass(q = m + beta * q, u -= alpha * q);
    }
    step.pass(z = n + beta * z, w -= alpha * z, r -= alpha * v);
    sum_beside_product(step);
    s.cycle.resize(pipelined_turn - 1, step);

    Sequence& replacing = s.next_iteration();
    replacing.pass(p = u + beta * p, s.x += alpha * p);
    s.residual(replacing, r);
    s.precondition(replacing, u, r);
    s.multiply(replacing, u, w);
    s.multiply(replacing, p, v);
    s.precondition(replacing, q, v);
    s.multiply(replacing, q, z);
    sum_beside_product(replacing);
}

}  // namespace rmsp::solvers
