#pragma once

#include <type_traits>

#include <rmsp/error.hpp>

#include "runtime/solvers/recipe.hpp"

namespace rmsp::solvers {

/// Least squares by Golub-Kahan bidiagonalisation (C. C. Paige, M. A. Saunders, LSQR, 1982): minimises |b - A x|, for
/// matrices that need not be square. It ends where the residual is as small as was asked for, or orthogonal to the
/// columns of A. For |A| stands the largest column of the bidiagonal matrix, which is at most the 2-norm.
template <class T>
void lsqr(Recipe<T>& s)
{
    if (s.preconditioner != nullptr) {
        throw Error(ErrorCode::usage, "solver \"lsqr\" takes no preconditioner");
    }
    auto [u, av] = s.template vectors<2>();
    const Vec<T> v = s.column_vector(), w = s.column_vector(), au = s.column_vector();
    auto [uu, vv, alpha, beta, inverse, rho, rho_bar, phi_bar, c, sn, along, keep] = s.template scalars<12>();
    const Scalar norm = s.matrix_norm.emplace(s.scalar());

    s.residual(s.start, u);
    s.start.pass(uu = dot(u, u), beta = sqrt(uu), inverse = 1.0 / beta, phi_bar = beta, s.check(beta));
    s.start.pass(u = inverse * u);
    s.multiply_transposed(s.start, u, v);
    // A^T r = 0: x is a solution already. Squares of very small entries are 0 as well; larger ones tell them apart.
    constexpr double enlarge = std::is_same_v<T, float> ? 1.0 : 1e150;
    s.start.pass(w = enlarge * v, vv = dot(w, w), stop_if(vv <= 0.0, code(Outcome::converged)));
    s.start.pass(vv = dot(v, v), alpha = sqrt(vv), inverse = 1.0 / alpha, rho_bar = alpha, norm = alpha,
                 stop_unless(is_finite(alpha), code(Outcome::not_finite)), s.need_positive(alpha));
    s.start.pass(v = inverse * v, w = v);

    Sequence& step = s.next_iteration();
    s.multiply(step, v, av);
    step.pass(u = av - alpha * u, uu = dot(u, u), beta = sqrt(uu), inverse = 1.0 / max(beta, smallest),
              norm = max(norm, hypot(alpha, beta)));
    step.pass(u = inverse * u);
    s.multiply_transposed(step, u, au);
    step.pass(v = au - beta * v, vv = dot(v, v), alpha = sqrt(vv), inverse = 1.0 / max(alpha, smallest),
              rho = max(hypot(rho_bar, beta), smallest), c = rho_bar / rho, sn = beta / rho, along = c * phi_bar / rho,
              keep = sn * alpha / rho, rho_bar = 0.0 - c * alpha, phi_bar = sn * phi_bar);
    step.pass(s.x += along * w, v = inverse * v, w = v - keep * w, s.check(phi_bar),
              stop_if(alpha * abs(c) <= s.options.normal_tolerance * norm, code(Outcome::converged)));
}

}  // namespace rmsp::solvers
