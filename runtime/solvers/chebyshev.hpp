#pragma once

#include "runtime/solvers/eigenvalue_bounds.hpp"
#include "runtime/solvers/recipe.hpp"

namespace rmsp::solvers {

/// Chebyshev iteration (Y. Saad, Iterative Methods for Sparse Linear Systems, algorithm 12.1): no inner products but
/// that of the stopping test. It needs an interval that holds the eigenvalues of M A: SolverOptions gives it, or some
/// iterations of conjugate gradients estimate it.
template <class T>
void chebyshev(Recipe<T>& s)
{
    auto [r, d, q] = s.template vectors<3>();
    auto [rho, rho_new, rr, along, keep, centre, radius] = s.template scalars<7>();
    const Vec<T> z = s.preconditioned(r);

    s.residual(s.start, r);
    s.precondition(s.start, z, r);
    s.start.pass(rr = dot(r, r), s.check(sqrt(rr)), s.need_positive(centre), rho = radius / centre,
                 along = 1.0 / centre);
    s.start.pass(d = along * z);

    Sequence& step = s.next_iteration();
    s.multiply(step, d, q);
    step.pass(s.x += d.expression(), r -= q.expression(), rr = dot(r, r), s.check(sqrt(rr)),
              rho_new = 1.0 / (2.0 * centre / radius - rho), keep = rho_new * rho, along = 2.0 * rho_new / radius,
              rho = rho_new);
    s.precondition(step, z, r);
    step.pass(d = keep * d + along * z);

    s.prepare = [&s, centre, radius, bounds = EigenvalueBounds<T>(s)]() mutable {
        const auto [least, most] = bounds.find();
        s.set(centre, (most + least) / 2);
        s.set(radius, std::max((most - least) / 2, 1e-6 * most));
    };
}

}  // namespace rmsp::solvers
