#pragma once

#include "runtime/solvers/recipe.hpp"

namespace rmsp::solvers {

inline int gmres_scalars(const SolverOptions& options)
{
    const int m = options.restart;
    return m * (m + 1) / 2 + 5 * m + 512;
}

/// Generalised minimal residuals, restarted (Y. Saad, M. H. Schultz 1986), preconditioned from the right. Each vector
/// is made orthogonal to those before it by classical Gram-Schmidt, twice: as good as modified Gram-Schmidt, and its
/// inner products come in groups. The least squares problem is kept triangular by Givens rotations, on the devices.
template <class T>
void gmres(Recipe<T>& s)
{
    const int m = s.options.restart;
    const auto at = [](int i) { return static_cast<std::size_t>(i); };
    const std::vector<Vec<T>> v = s.vectors(m + 1);
    const std::vector<Scalar> again = s.scalars(m), cosine = s.scalars(m), sine = s.scalars(m);
    const std::vector<Scalar> g = s.scalars(m);  // the rotated right-hand side; 0 for columns that were not reached
    const std::vector<Scalar> y = s.scalars(m);
    std::vector<std::vector<Scalar>> h;  // h[j][i], i <= j: column j of the triangle
    for (int j = 0; j < m; ++j) {
        h.push_back(s.scalars(j + 1));
    }
    const Vec<T> q = s.vector();  // products, which are done also after the last iteration, leave the basis as it is
    auto [rr, residual, ww, below, inverse, rotated] = s.template scalars<6>();

    // Columns that were not reached make no difference to y: zeros, and 1 on the diagonal.
    std::vector<Statement> clear_column_ends;
    std::vector<Statement> clear_triangle;
    for (int j = 0; j < m; ++j) {
        clear_column_ends.push_back(g[at(j)] = 0.0);
        for (int i = 0; i <= j; ++i) {
            clear_triangle.push_back(h[at(j)][at(i)] = i == j ? 1.0 : 0.0);
        }
    }

    // x += M V y, where H y = g
    const auto form_x = [&](Sequence& to) {
        std::vector<Statement> substitution;
        for (int i = m - 1; i >= 0; --i) {
            substitution.push_back(y[at(i)] = g[at(i)]);
            for (int j = i + 1; j < m; ++j) {
                substitution.push_back(y[at(i)] = y[at(i)] - h[at(j)][at(i)] * y[at(j)]);
            }
            substitution.push_back(y[at(i)] = y[at(i)] / h[at(i)][at(i)]);
        }
        to.pass(substitution);
        if (s.preconditioner == nullptr) {
            add_combination(to, s.x, y, v, 0, m);
        } else {
            const Vec<T> sum = v.back();
            to.pass(sum = combination(y, v, 0, std::min(m, 12)));
            add_combination(to, sum, y, v, 12, m);
            const Vec<T> correction = s.preconditioned(sum);
            s.precondition(to, correction, sum);
            to.pass(s.x += correction.expression());
        }
    };

    s.residual(s.start, q);
    s.start.pass(rr = dot(q, q), clear_triangle, clear_column_ends, residual = sqrt(rr), inverse = 1.0 / residual,
                 s.check(residual));
    s.start.pass(v[0] = inverse * q);

    const Vec<T> preconditioned = s.preconditioned(v[0]);
    for (int j = 0; j < m; ++j) {
        Sequence& step = s.next_iteration();
        const Vec<T>& w = v[at(j + 1)];
        const std::vector<Scalar>& column = h[at(j)];
        const Vec<T> z = s.preconditioner == nullptr ? v[at(j)] : preconditioned;
        s.precondition(step, z, v[at(j)]);
        s.multiply(step, z, q);
        for (int i = 0; i <= j; ++i) {
            step.pass(column[at(i)] = dot(v[at(i)], q));
        }
        const int first = std::min(j + 1, 11);
        step.pass(w = q - combination(column, v, 0, first));
        subtract_combination(step, w, column, v, first, j + 1);
        for (int i = 0; i <= j; ++i) {
            step.pass(again[at(i)] = dot(v[at(i)], w));
        }
        subtract_combination(step, w, again, v, 0, j + 1);

        std::vector<Statement> rotations;
        for (int i = 0; i <= j; ++i) {
            rotations.push_back(column[at(i)] = column[at(i)] + again[at(i)]);
        }
        for (int i = 0; i < j; ++i) {
            const Scalar& upper = column[at(i)];
            const Scalar& lower = column[at(i + 1)];
            rotations.push_back(rotated = cosine[at(i)] * upper + sine[at(i)] * lower);
            rotations.push_back(lower = cosine[at(i)] * lower - sine[at(i)] * upper);
            rotations.push_back(upper = rotated);
        }
        // A column of zeros, of a singular matrix, adds nothing to x.
        const Scalar& diagonal = column[at(j)];
        step.pass(ww = dot(w, w), rotations, below = sqrt(ww), inverse = 1.0 / below, rotated = hypot(diagonal, below),
                  stop_if(rotated <= 0.0, code(Outcome::breakdown)), rotated = max(rotated, smallest),
                  cosine[at(j)] = diagonal / rotated, sine[at(j)] = below / rotated, diagonal = rotated,
                  g[at(j)] = cosine[at(j)] * residual, residual = 0.0 - sine[at(j)] * residual, s.check(abs(residual)));
        if (j + 1 < m) {
            step.pass(w = inverse * w);
        } else {
            form_x(step);
            s.residual(step, q);
            step.pass(rr = dot(q, q), clear_column_ends, residual = sqrt(rr), inverse = 1.0 / residual,
                      stop_if(residual <= s.target(), code(Outcome::converged)));
            step.pass(v[0] = inverse * q);
        }
    }
    form_x(s.finish);
}

}  // namespace rmsp::solvers
