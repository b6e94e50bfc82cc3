#pragma once

#include "runtime/solvers/recipe.hpp"

namespace rmsp::solvers {

/// Minimal residuals for symmetric matrices, indefinite ones too (C. C. Paige, M. A. Saunders 1975; with a symmetric
/// positive definite preconditioner as in H. Elman, D. Silvester, A. Wathen, Finite Elements and Fast Iterative
/// Solvers, algorithm 6.1). A preconditioner makes the norm that is minimised another one; a recurrence for the
/// residual itself (S.-C. Choi, C. C. Paige, M. A. Saunders 2011) then tells when to stop.
template <class T>
void minres(Recipe<T>& s)
{
    const bool preconditioned = s.preconditioner != nullptr;
    const std::vector<Vec<T>> v = s.vectors(2), w = s.vectors(2);
    const std::vector<Vec<T>> z{s.preconditioned(v[0]), s.preconditioned(v[1])};
    const Vec<T> r = s.preconditioned(v[0]);
    const Vec<T> q = s.vector();
    auto [gg, gamma, gamma_old, delta, inverse, eta, tau, rr, shrunk, along] = s.template scalars<10>();
    auto [c, c_old, sn, sn_old, sn_new, a0, a1, a2, a3] = s.template scalars<9>();

    s.residual(s.start, v[0]);
    if (preconditioned) {
        s.start.pass(r = v[0]);
    }
    s.precondition(s.start, z[0], v[0]);
    s.start.pass(gg = dot(v[0], z[0]), rr = dot(v[0], v[0]), s.check(sqrt(rr)), s.need_positive(gg), eta = sqrt(gg),
                 inverse = 1.0 / eta, gamma_old = 0.0, c = 1.0, c_old = 1.0, sn = 0.0, sn_old = 0.0);
    s.start.pass(v[0] = inverse * v[0]);
    if (preconditioned) {
        s.start.pass(z[0] = inverse * z[0]);
    }

    // The newest vectors take the places of the oldest ones.
    for (std::size_t now = 0; now < 2; ++now) {
        const std::size_t next = 1 - now;
        Sequence& step = s.next_iteration();
        s.multiply(step, z[now], q);
        step.pass(delta = dot(q, z[now]));
        step.pass(v[next] = q - delta * v[now] - gamma_old * v[next]);
        s.precondition(step, z[next], v[next]);
        step.pass(gg = dot(v[next], z[next]), stop_if(gg < 0.0, code(Outcome::breakdown)), gamma = sqrt(gg),
                  a0 = c * delta - c_old * sn * gamma_old, a1 = hypot(a0, gamma),
                  a2 = sn * delta + c_old * c * gamma_old, a3 = sn_old * gamma_old,
                  stop_if(a1 <= 0.0, code(Outcome::breakdown)), a0 = a0 / a1, sn_new = gamma / a1, c_old = c, c = a0,
                  sn_old = sn, sn = sn_new, a2 = a2 / a1, a3 = a3 / a1, a1 = 1.0 / a1, tau = c * eta,
                  eta = 0.0 - sn * eta, gamma_old = gamma, inverse = 1.0 / gamma);
        if (preconditioned) {
            step.pass(shrunk = sn * sn, along = c * eta / max(gamma, smallest));
            step.pass(w[next] = a1 * z[now] - a2 * w[now] - a3 * w[next], s.x += tau * w[next],
                      r = shrunk * r + along * v[next], rr = dot(r, r), s.check(sqrt(rr)));
            step.pass(v[next] = inverse * v[next], z[next] = inverse * z[next]);
        } else {
            step.pass(w[next] = a1 * z[now] - a2 * w[now] - a3 * w[next], s.x += tau * w[next],
                      v[next] = inverse * v[next], s.check(abs(eta)));
        }
    }
}

}  // namespace rmsp::solvers
